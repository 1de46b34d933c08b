//! fish: it quotes what it inserts. It is told each word with what is shown beside it, behind a tab.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::shells::{offers, write_lines};

/// The word at the cursor goes as far as the cursor, as it stands.
const SCRIPT: &str = r#"complete --keep-order --exclusive --command %PROGRAM% --arguments "(%VARIABLE%=fish %PROGRAM% -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor))"
"#;

/// The shell.
pub(crate) struct Fish;

impl EnvCompleter for Fish {
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
        to.write_all(SCRIPT.replace("%PROGRAM%", program).replace("%VARIABLE%", variable).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        mut words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(last) = words.pop() else { return Ok(()) };
        // No name that is no text is offered, so that none can be begun.
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

/// What a word means that may end in the middle of its quotes, without expansions.
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
                    // Nothing is escaped yet.
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
    use super::*;

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
