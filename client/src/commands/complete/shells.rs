//! The words offered to every shell, and the shells that quote themselves: zsh and fish.
//!
//! Offered words come from outside: ids of models from servers, titles from conversations, names from folders. No shell
//! may execute any of it. zsh and fish quote what they insert; bash gets words that are quoted already. Words that no
//! shell may get are left out here.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::{CompletionCandidate, engine, env::EnvCompleter};

use crate::render::{one_line, steers};

/// A word that fits at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedWord {
    pub(super) word: String,
    /// The explanation beside it.
    pub(super) about: Option<String>,
}

/// The words that fit in the place of the word number `at`.
pub(super) fn offers(
    command: &mut Command,
    words: Vec<OsString>,
    at: usize,
    folder: Option<&Path>,
) -> io::Result<Vec<OfferedWord>> {
    let typed = words.get(at).cloned().unwrap_or_default();
    let candidates = engine::complete(command, words, at, folder)?;
    Ok(candidates.iter().filter_map(|candidate| offer(candidate, &typed)).collect())
}

/// `None` for words that are not UTF-8, steer a terminal or end a line, and for those that would be read as a flag
/// though the user types none.
fn offer(candidate: &CompletionCandidate, typed: &OsStr) -> Option<OfferedWord> {
    let word = candidate.get_value().to_str()?;
    let is_flag = candidate.get_id().is_some_and(|id| id.starts_with("arg::"));
    let begins_as_flag = word.starts_with('-') && !typed.as_encoded_bytes().starts_with(b"-");
    if word.is_empty()
        || word.chars().any(|c| c == '\n' || c == '\t' || steers(c))
        || begins_as_flag && !is_flag
    {
        return None;
    }
    let about =
        candidate.get_help().map(|help| one_line(help.to_string().lines().next().unwrap_or_default()));
    Some(OfferedWord { word: word.to_owned(), about })
}

/// Writes each line with its line feed.
pub(super) fn write_lines(lines: impl IntoIterator<Item = String>, to: &mut dyn Write) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(to, "{line}"))
}

/// The variable with the number of the word at the cursor.
const ZSH_WORD_AT: &str = "AGENTCTL_COMPLETE_AT";

/// The script sends all words without their quotes (`Q`). It is sourced in a start file, or is the file `_agentctl` in a folder of functions:
/// zsh then calls it as the function of that name, and the first call has to complete, too.
const ZSH_SCRIPT: &str = r#"#compdef %PROGRAM%
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
if [[ ${funcstack[1]-} == _%PROGRAM% ]]; then
    _agentctl_complete "$@"
else
    compdef _agentctl_complete %PROGRAM%
fi
"#;

/// zsh. A reply is `word:explanation`, with colons and backslashes of the word escaped.
pub(crate) struct ZshCompleter;

impl EnvCompleter for ZshCompleter {
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
        let script = ZSH_SCRIPT
            .replace("%VARIABLE%", variable)
            .replace("%PROGRAM%", program)
            .replace("%AT%", ZSH_WORD_AT);
        to.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(at) = env::var(ZSH_WORD_AT).ok().and_then(|at| at.parse().ok()) else { return Ok(()) };
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

/// The script sends the word at the cursor with its quotes, up to the cursor.
const FISH_SCRIPT: &str = r#"complete --keep-order --exclusive --command %PROGRAM% --arguments "(%VARIABLE%=fish %PROGRAM% -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor))"
"#;

/// fish. A reply is the word, a tab and the explanation.
pub(crate) struct FishCompleter;

impl EnvCompleter for FishCompleter {
    fn name(&self) -> &'static str {
        "fish"
    }

    fn is(&self, name: &str) -> bool {
        name == "fish"
    }

    fn write_registration(
        &self,
        variable: &str,
        _: &str,
        program: &str,
        _: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        to.write_all(FISH_SCRIPT.replace("%PROGRAM%", program).replace("%VARIABLE%", variable).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        mut words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(last) = words.pop() else { return Ok(()) };
        // No word that is not UTF-8 is offered, so none can be completed.
        let Some(last) = last.to_str().map(unquoted) else { return Ok(()) };
        words.push(last.into());
        let at = words.len() - 1;
        let lines = offers(command, words, at, folder)?.into_iter().map(|offer| match offer.about {
            Some(about) => format!("{}\t{about}", offer.word),
            None => offer.word,
        });
        write_lines(lines, to)
    }
}

/// The word without its quotes, which may be open at its end, and without expansions.
fn unquoted(word: &str) -> String {
    let (mut value, mut quote, mut chars) = (String::new(), None, word.chars().peekable());
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, '\\') => {
                let is_escape = |next: &char| match quote {
                    None => true,
                    Some('\'') => matches!(next, '\'' | '\\'),
                    Some(_) => matches!(next, '"' | '$' | '\\'),
                };
                match chars.next_if(is_escape) {
                    Some(escaped) => value.push(escaped),
                    None if chars.peek().is_some() => value.push('\\'),
                    // A backslash at the end escapes nothing yet.
                    None => {}
                }
            }
            _ => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_no_shell_is_to_get_is_left_out() {
        let get = |value: OsString, typed: &str| {
            offer(&CompletionCandidate::new(value), OsStr::new(typed)).map(|offer| offer.word)
        };
        for bad in
            ["a\nb", "a\tb", "a\u{1b}[2J", "a\rb", "a\u{7f}", "a\u{85}", "\u{202e}a", "", "-rf", "--approve"]
        {
            assert_eq!(get(bad.into(), ""), None, "{bad:?}");
        }
        assert_eq!(get(OsString::from_vec(vec![b'a', 0xff]), ""), None);
        for good in ["a b", "$(x)", "é", "'"] {
            assert_eq!(get(good.into(), "").as_deref(), Some(good));
        }
        assert_eq!(get("--approve".into(), "--").as_deref(), Some("--approve"));
        let flag = CompletionCandidate::new("--approve").id(Some("arg::approve".to_owned()));
        assert!(offer(&flag, OsStr::new("")).is_some());
    }

    #[test]
    fn what_is_typed_is_read_without_its_quotes() {
        for (typed, meant) in [
            ("local/x", "local/x"),
            (r"a\ b\$", "a b$"),
            ("'a b", "a b"),
            (r"'a\'b\n'c", r"a'b\nc"),
            (r#""a\$\x"#, r"a$\x"),
            (r"a\", "a"),
        ] {
            assert_eq!(unquoted(typed), meant, "{typed}");
        }
    }
}
