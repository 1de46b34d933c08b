//! bash: it inserts what it is given as it stands, so that we quote, in the way in which the user began to.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::{
    bash_words::{Quote, command_words, quoted},
    shells::{offers, write_lines},
};

/// The command line up to the cursor.
const LINE: &str = "AGENTCTL_COMPLETE_LINE";

/// What bash replaces: the end of that.
const REPLACED: &str = "AGENTCTL_COMPLETE_WORD";

/// bash 3.2 and above. Before 4.0 no blank follows a word.
const SCRIPT: &str = r#"
_agentctl_complete() {
    local nospace=1 reply
    compopt +o nospace 2>/dev/null && nospace=0
    COMPREPLY=()
    while IFS= read -r reply; do
        [[ -n $reply ]] && COMPREPLY+=("$reply")
    done <<< "$(
        %VARIABLE%=bash \
        %LINE%="${COMP_LINE:0:$COMP_POINT}" \
        %REPLACED%="$2" \
        %PROGRAM% -- complete 2>/dev/null
    )"
    if [[ $nospace == 0 && ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
if [[ ${BASH_VERSINFO[0]} -gt 4 || ( ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 ) ]]; then
    complete -o nospace -o bashdefault -o nosort -F _agentctl_complete %PROGRAM%
else
    complete -o nospace -o bashdefault -F _agentctl_complete %PROGRAM%
fi
"#;

/// The shell.
pub(crate) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        variable: &str,
        _: &str,
        program: &str,
        _: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let script = SCRIPT.replace("%VARIABLE%", variable).replace("%PROGRAM%", program);
        to.write_all(script.replace("%LINE%", LINE).replace("%REPLACED%", REPLACED).as_bytes())
    }

    /// Of a script that an older version made there is no line, and nothing is offered: it would expand what it gets.
    fn write_complete(
        &self,
        command: &mut Command,
        _: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let (Ok(line), Ok(replaced)) = (env::var(LINE), env::var(REPLACED)) else { return Ok(()) };
        let mut words = command_words(&line);
        let Some(last) = words.pop() else { return Ok(()) };
        // What stays of the word, before that which bash replaces.
        let Some(stays) = last.raw.strip_suffix(replaced.as_str()) else { return Ok(()) };
        let stays = command_words(stays).pop().unwrap_or_default();
        let args: Vec<OsString> =
            words.into_iter().map(|word| word.value).chain([last.value]).map(OsString::from).collect();
        let at = args.len() - 1;
        // An unquoted `~/` is the home directory, and stays what it is.
        let keeps_tilde = stays.raw.is_empty() && last.raw.starts_with("~/");
        let offers = offers(command, args, at, folder)?;
        let lines = offers.into_iter().filter_map(|offer| {
            let rest = offer.word.strip_prefix(stays.value.as_str())?;
            match rest.strip_prefix("~/").filter(|_| keeps_tilde) {
                Some(below) => Some(format!("~/{}", quoted(below, Quote::None)?)),
                None => quoted(rest, stays.quote),
            }
        });
        write_lines(lines, to)
    }
}
