//! Texts that come from elsewhere, made fit for a line of a terminal.

use std::{env, io};

use super::steers;

/// The text with nothing in it that could steer a terminal or end the line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' || steers(c) { ' ' } else { c }).collect()
}

/// The text as one word of a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Whether a terminal may get colours: it is able to, and `NO_COLOR` is not set.
pub(crate) fn colour_wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How many characters a line of stdout holds; `None` where it is no terminal, or one that does not tell.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The text in a colour, by its number on terminals.
pub(crate) fn coloured(colour: &str, text: &str) -> String {
    format!("\x1b[{colour}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell() {
        for (text, expected) in
            [("local/m:8b", "local/m:8b"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(text), expected);
        }
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("a\nb\u{1b}c\u{85}d"), "a b c d");
    }
}
