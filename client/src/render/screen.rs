//! The abilities of stdout, and foreign texts made fit for a line of a terminal.

use std::{
    env,
    io::{self, IsTerminal},
};

use crate::output::TerminalSize;
use agentd_protocol::{daemon::SessionInfo, terminal_text::steers};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many characters of a session's id are shown; enough to tell sessions apart.
const ID_LENGTH: usize = 13;

/// The abilities of stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    /// The characters in a line; `None` where nothing limits them.
    pub(crate) width: Option<usize>,
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// Whether stdout is a terminal, which foreign texts must not steer.
    pub(crate) is_terminal: bool,
}

impl Screen {
    /// The abilities of this process's stdout: colours only on a terminal, and without `NO_COLOR`.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { width: terminal_width(), colour: is_terminal && colour_wanted(), is_terminal }
    }

    /// The text in a colour (an SGR number), where colours are wanted.
    pub(crate) fn paint(self, colour: &str, text: &str) -> String {
        if self.colour { coloured(colour, text) } else { text.to_owned() }
    }
}

/// The beginning of a session's id for lists.
pub(crate) fn short_id(id: &str) -> String {
    one_line(id).chars().take(ID_LENGTH).collect()
}

/// The columns that a text takes in a terminal: characters of Chinese, Japanese and Korean take two, marks above letters none.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text cut to `room` columns; `…` replaces the rest.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    format!("{}…", taken(text.chars(), room).trim_end())
}

/// The end of the text in `room` columns; `…` replaces the rest. The end of a path says most.
pub(crate) fn cut_begin(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let end: String = taken(text.chars().rev(), room).chars().rev().collect();
    format!("…{}", end.trim_start())
}

/// The first characters that leave room for one more column.
fn taken(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| {
        let width = c.width().unwrap_or_default();
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    characters.take_while(fits).collect()
}

/// The text with blanks after it, or before it, up to `width` columns.
pub(crate) fn padded(text: &str, width: usize, is_right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(columns(text)));
    if is_right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// A count with its noun: `1 client`, `2 clients`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The text with line feeds, tabs and characters that steer a terminal as spaces.
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

/// Whether a terminal gets colours: neither `NO_COLOR` nor `TERM=dumb` is set.
pub(crate) fn colour_wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The characters in a line of stdout; `None` where it is no terminal, or its width is unknown.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The size of the terminal behind stdout; `None` where it is none, or its size is unknown.
pub(super) fn terminal_size() -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some(TerminalSize { columns, rows })
}

/// The text in a colour, by its SGR number.
pub(crate) fn coloured(colour: &str, text: &str) -> String {
    format!("\x1b[{colour}m{text}\x1b[0m")
}

/// A line of a unified diff, harmless to a terminal, in the colours of diffs.
pub(crate) fn paint_diff(line: &str, colour: bool) -> String {
    let text = one_line(line);
    let sgr = match line.as_bytes() {
        [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => "1",
        [b'-', ..] => "31",
        [b'+', ..] => "32",
        [b'@', b'@', ..] => "36",
        _ => return text,
    };
    if colour { coloured(sgr, &text) } else { text }
}

/// The title of a session: its folder, and its name or else its first message.
pub(crate) fn session_title(session: &SessionInfo) -> String {
    let text = session.name.as_deref().unwrap_or(&session.first_message);
    let folder = session.cwd.rsplit('/').next().unwrap_or_default();
    format!("{}: {}", one_line(folder), one_line(text))
}

#[cfg(test)]
pub(crate) fn example_session(id: &str) -> SessionInfo {
    let time = "2026-11-21T14:04:00.000Z";
    SessionInfo {
        id: id.into(),
        path: None,
        cwd: "/home/u/project".into(),
        name: None,
        created: time.into(),
        modified: time.into(),
        message_count: 12,
        first_message: "What\nis this?".into(),
        parent_id: None,
        live: false,
        is_streaming: false,
        clients: 0,
    }
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
        for (room, begin, end) in
            [(2, "…", "…"), (3, "日…", "…語"), (5, "日本…", "…本語"), (6, "日本語", "日本語")]
        {
            assert_eq!(
                (cut("日本語", room), cut_begin("日本語", room)),
                (begin.into(), end.into()),
                "{room}"
            );
        }
        assert_eq!(
            (columns("日e\u{301}"), padded("日", 4, false), padded("日", 4, true)),
            (3, "日  ".into(), "  日".into())
        );
        assert_eq!((counted(1, "client"), counted(0, "client")), ("1 client".into(), "0 clients".into()));
    }

    #[test]
    fn colour_where_it_is_wanted() {
        assert_eq!(Screen::default().paint("2", "x"), "x");
        assert_eq!(Screen { colour: true, ..Screen::default() }.paint("2", "x"), "\x1b[2mx\x1b[0m");
    }

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
