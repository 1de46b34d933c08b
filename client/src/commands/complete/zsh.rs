//! zsh: it quotes what it inserts. It is told each word as `word:about`, with colons and backslashes of the word escaped.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::shells::{offers, write_lines};

/// The number of the word at the cursor.
const AT: &str = "AGENTCTL_COMPLETE_AT";

/// The words go without their quotes (`Q`), those of the one at the cursor included.
const SCRIPT: &str = r#"#compdef %PROGRAM%
function _agentctl_complete() {
    local -a offers plain folders
    local offer
    offers=("${(@f)$( \
        %AT%=$((CURRENT - 1)) %VARIABLE%=zsh %PROGRAM% -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null \
    )}")
    for offer in $offers; do
        if [[ ${offer%%:*} == */ ]]; then
            folders+=("$offer")
        elif [[ -n $offer ]]; then
            plain+=("$offer")
        fi
    done
    (( $#folders )) && _describe -V 'values' folders -S ''
    (( $#plain )) && _describe -V 'values' plain
}
compdef _agentctl_complete %PROGRAM%
"#;

/// The shell.
pub(crate) struct Zsh;

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        "zsh"
    }

    fn is(&self, name: &str) -> bool {
        name == "zsh"
    }

    fn write_registration(
        &self,
        variable: &str,
        _: &str,
        program: &str,
        _: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let script = SCRIPT.replace("%VARIABLE%", variable).replace("%PROGRAM%", program).replace("%AT%", AT);
        to.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(at) = env::var(AT).ok().and_then(|at| at.parse().ok()) else { return Ok(()) };
        if at >= words.len() {
            return Ok(());
        }
        let lines = offers(command, words, at, folder)?.into_iter().map(|offer| {
            let word = offer.word.replace('\\', r"\\").replace(':', r"\:");
            match offer.about {
                Some(about) => format!("{word}:{}", about.replace('\\', r"\\")),
                None => word,
            }
        });
        write_lines(lines, to)
    }
}
