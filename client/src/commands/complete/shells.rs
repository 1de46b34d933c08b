//! The shells that complete, and what each is told.
//!
//! What is offered comes from elsewhere: ids of models from servers, titles from conversations, names from folders. No shell
//! may take anything of it for an order. zsh and fish quote what they insert; bash inserts it as it is, so that it gets words
//! that are quoted already. What no shell is to get at all is left out here, for all three.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::{
    CompletionCandidate, engine,
    env::{EnvCompleter, Shells},
};

use super::{bash::Bash, fish::Fish, zsh::Zsh};
use crate::render::{one_line, steers};

/// The three shells.
pub(crate) const SHELLS: Shells<'static> = Shells(&[&Bash, &Zsh, &Fish]);

/// The script by which a shell asks us.
pub(crate) fn script(shell: &dyn EnvCompleter, variable: &str, program: &str) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    shell.write_registration(variable, program, program, program, &mut script)?;
    Ok(script)
}

/// One thing that fits at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// The whole word.
    pub(super) word: String,
    /// What is shown beside it.
    pub(super) about: Option<String>,
}

/// What fits in the place of the word number `at`.
pub(super) fn offers(
    command: &mut Command,
    words: Vec<OsString>,
    at: usize,
    folder: Option<&Path>,
) -> io::Result<Vec<Offer>> {
    let typed = words.get(at).cloned().unwrap_or_default();
    let candidates = engine::complete(command, words, at, folder)?;
    Ok(candidates.iter().filter_map(|candidate| offer(candidate, &typed)).collect())
}

/// What is left out: words that are no text, that steer a terminal or end a line, and those that would be taken for a flag
/// though the user types none.
fn offer(candidate: &CompletionCandidate, typed: &OsStr) -> Option<Offer> {
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
    Some(Offer { word: word.to_owned(), about })
}

/// Writes lines, each with its end.
pub(super) fn write_lines(lines: impl IntoIterator<Item = String>, to: &mut dyn Write) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(to, "{line}"))
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
}
