//! Completions for bash. bash inserts a reply verbatim, so replies are quoted here, in the quotes that the user began.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::shells::{offers, write_lines};

/// The command line up to the cursor.
const LINE: &str = "AGENTCTL_COMPLETE_LINE";

/// The end of that line, which bash replaces.
const REPLACED: &str = "AGENTCTL_COMPLETE_WORD";

/// For bash 3.2 and later. Before 4.0 no space follows a completed word.
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

pub(crate) struct BashCompleter;

impl EnvCompleter for BashCompleter {
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

    /// A script of an older version sets no line; then nothing is offered, since that script would expand the replies.
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
        // The beginning of the word that bash keeps.
        let Some(stays) = last.raw.strip_suffix(replaced.as_str()) else { return Ok(()) };
        let stays = command_words(stays).pop().unwrap_or_default();
        let args: Vec<OsString> =
            words.into_iter().map(|word| word.value).chain([last.value]).map(OsString::from).collect();
        let at = args.len() - 1;
        // An unquoted `~/` stands for the home directory and stays unquoted.
        let keeps_tilde = stays.raw.is_empty() && last.raw.starts_with("~/");
        let offers = offers(command, args, at, folder)?;
        let lines = offers.into_iter().filter_map(|offer| {
            let rest = offer.word.strip_prefix(stays.value.as_str())?;
            match rest.strip_prefix("~/").filter(|_| keeps_tilde) {
                Some(below) => Some(format!("~/{}", quoted(below, ShellQuote::None)?)),
                None => quoted(rest, stays.quote),
            }
        });
        write_lines(lines, to)
    }
}

/// The quotes around a position in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ShellQuote {
    #[default]
    None,
    Single,
    Double,
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ShellWord {
    /// The word with its quotes.
    raw: String,
    /// The word without quotes, and without expansions.
    value: String,
    /// The quotes at its end.
    quote: ShellQuote,
}

/// The words of a command. The last one is the word at the end of the line: empty after a space. Assignments before the
/// command are left out.
fn command_words(line: &str) -> Vec<ShellWord> {
    let mut words = Vec::new();
    let mut word = ShellWord::default();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if word.quote == ShellQuote::None && matches!(c, ' ' | '\t' | '\n') {
            if !word.raw.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        word.raw.push(c);
        match (word.quote, c) {
            (ShellQuote::None, '\'') => word.quote = ShellQuote::Single,
            (ShellQuote::None, '"') => word.quote = ShellQuote::Double,
            (ShellQuote::Single, '\'') | (ShellQuote::Double, '"') => word.quote = ShellQuote::None,
            (ShellQuote::None | ShellQuote::Double, '\\') => {
                // A backslash at the end of the line escapes nothing yet.
                if let Some(escaped) = chars.next() {
                    word.raw.push(escaped);
                    let is_escape =
                        word.quote == ShellQuote::None || matches!(escaped, '$' | '`' | '"' | '\\');
                    if !is_escape {
                        word.value.push('\\');
                    }
                    word.value.push(escaped);
                }
            }
            _ => word.value.push(c),
        }
    }
    words.push(word);
    let is_assignment = |word: &ShellWord| {
        word.raw.split_once('=').is_some_and(|(name, _)| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let commands_at = words.iter().position(|word| !is_assignment(word)).unwrap_or_default();
    words.split_off(commands_at)
}

/// The text to insert at a position in such quotes; `None` where no text would have the meaning.
fn quoted(text: &str, at: ShellQuote) -> Option<String> {
    match at {
        ShellQuote::None => Some(escaped(text)),
        // Only the quote itself is special. bash closes the quotes, unless the reply ends with one; then we do.
        ShellQuote::Single => {
            let inner = text.replace('\'', r"'\''");
            Some(if inner.ends_with('\'') { inner + "'" } else { inner })
        }
        // Inside double quotes `!` is expanded, and a backslash before it stays in the word.
        ShellQuote::Double if text.contains('!') => None,
        ShellQuote::Double => {
            let mut inner = String::new();
            for c in text.chars() {
                if matches!(c, '$' | '`' | '"' | '\\') {
                    inner.push('\\');
                }
                inner.push(c);
            }
            Some(if inner.ends_with('"') { inner + "\"" } else { inner })
        }
    }
}

/// The text with a backslash before each special character.
fn escaped(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars() {
        if !c.is_alphanumeric() && !"_-./:@%+,=".contains(c) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_read_as_bash_reads_them() {
        let check = |line: &str, values: &[&str], raw: &str, quote: ShellQuote| {
            let words = command_words(line);
            let found: Vec<&str> = words.iter().map(|word| word.value.as_str()).collect();
            let last = words.last().unwrap();
            assert_eq!((found, last.raw.as_str(), last.quote), (values.to_vec(), raw, quote), "{line}");
        };
        check("a b", &["a", "b"], "b", ShellQuote::None);
        check("a  b ", &["a", "b", ""], "", ShellQuote::None);
        check("X=1 _y2='a b' a --m=x", &["a", "--m=x"], "--m=x", ShellQuote::None);
        check(r#"a 'b $c "#, &["a", "b $c "], "'b $c ", ShellQuote::Single);
        check(r#"a "b\$\x\" c"#, &["a", r#"b$\x" c"#], r#""b\$\x\" c"#, ShellQuote::Double);
        check(r"a b\ c\", &["a", "b c"], r"b\ c\", ShellQuote::None);
        check(r#"a 'b'"c"d"#, &["a", "bcd"], r#"'b'"c"d"#, ShellQuote::None);
        check("", &[""], "", ShellQuote::None);
    }

    proptest! {
        /// An inserted text means what was offered, in every kind of quotes.
        #[test]
        fn what_is_quoted_means_the_same(text in "[ -~é]{0,20}", at in 0..3_usize) {
            let (begin, quote) = [("", ShellQuote::None), ("'", ShellQuote::Single), ("\"", ShellQuote::Double)][at];
            let Some(inserted) = quoted(&text, quote) else {
                prop_assert!(quote == ShellQuote::Double && text.contains('!'));
                return Ok(());
            };
            // bash closes the quotes, unless the last character is one.
            let end = if inserted.ends_with(begin) { "" } else { begin };
            let line = format!("a {begin}{inserted}{end}");
            let words = command_words(&line);
            prop_assert_eq!(words.len(), 2);
            prop_assert_eq!(&words[1].value, &text);
            prop_assert_eq!(words[1].quote, ShellQuote::None);
        }
    }
}
