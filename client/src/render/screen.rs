//! What stdout is, and texts cut and cleaned to fit it.

use std::io::{self, IsTerminal};

use super::{colour_wanted, coloured, line::terminal_width};

/// Characters of a session's id that are shown: enough to name it with.
const ID_LENGTH: usize = 13;

/// What stdout can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    /// How many characters a line holds; `None` where nothing says so.
    pub(crate) width: Option<usize>,
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// Whether it is a terminal, which must not be steered by what others wrote.
    pub(crate) is_terminal: bool,
}

impl Screen {
    /// What the stdout of this process can show: colours only on a terminal, and without `NO_COLOR`.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { width: terminal_width(), colour: is_terminal && colour_wanted(), is_terminal }
    }

    /// The text in a colour (its number on terminals), where colours are wanted.
    pub(crate) fn paint(self, colour: &str, text: &str) -> String {
        if self.colour { coloured(colour, text) } else { text.to_owned() }
    }
}

/// The beginning of a session's id, as lists show it.
pub(crate) fn short_id(id: &str) -> String {
    super::one_line(id).chars().take(ID_LENGTH).collect()
}

/// The text cut to so many characters; what is cut off shows as `…`.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A count with its noun: `1 client`, `2 clients`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        for (room, expected) in [(0, "…"), (1, "…"), (3, "äb…"), (5, "äb c…"), (4, "äb…"), (6, "äb cde")]
        {
            assert_eq!(cut("äb cde", room), expected, "{room}");
        }
        assert_eq!((counted(1, "client"), counted(0, "client")), ("1 client".into(), "0 clients".into()));
    }

    #[test]
    fn colour_where_it_is_wanted() {
        assert_eq!(Screen::default().paint("2", "x"), "x");
        assert_eq!(Screen { colour: true, ..Screen::default() }.paint("2", "x"), "\x1b[2mx\x1b[0m");
    }
}
