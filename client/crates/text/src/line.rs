//! Foreign texts made fit for a line of a terminal.

use agentd_protocol::{daemon::SessionInfo, terminal_text::steers};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many characters of a session's id are shown; enough to tell sessions apart.
const ID_LENGTH: usize = 13;

/// The beginning of a session's id for lists.
pub fn short_id(id: &str) -> String {
    one_line(id).chars().take(ID_LENGTH).collect()
}

/// The columns that a text takes in a terminal: characters of Chinese, Japanese and Korean take two, marks above letters none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// The text cut to `room` columns; `…` replaces the rest.
pub fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    format!("{}…", taken(text.chars(), room).trim_end())
}

/// The end of the text in `room` columns; `…` replaces the rest. The end of a path says most.
pub fn cut_begin(text: &str, room: usize) -> String {
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
pub fn padded(text: &str, width: usize, is_right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(columns(text)));
    if is_right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// A count with its noun: `1 client`, `2 clients`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The text with line feeds, tabs and characters that steer a terminal as spaces.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' || steers(c) { ' ' } else { c }).collect()
}

/// The text as one word of a shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The title of a session: its name, or else what was typed first.
#[must_use]
pub fn title(session: &SessionInfo) -> String {
    let text = one_line(session.name.as_deref().unwrap_or(&session.first_message));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The id of the session's model, without its provider; `None` before one was chosen.
#[must_use]
pub fn model_id(session: &SessionInfo) -> Option<String> {
    let model = session.model.as_deref()?;
    Some(one_line(model.split_once('/').map_or(model, |(_, id)| id)))
}

/// The title of a session after the name of its folder.
pub fn session_title(session: &SessionInfo) -> String {
    let folder = session.cwd.rsplit('/').next().unwrap_or_default();
    format!("{}: {}", one_line(folder), title(session))
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
