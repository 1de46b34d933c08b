//! The table of sessions.

use agentd_protocol::daemon::{SessionInfo, SessionList};

use jiff::Timestamp;

use crate::render::{Screen, ago, cut, one_line, short_id};

/// What a line holds where nothing says how wide it may be.
const DEFAULT_WIDTH: usize = 120;

/// The least room for the text at the end of a line.
const MIN_TEXT: usize = 20;

/// One line for each session, with what it is about at the end, cut to the width; nothing for no sessions.
pub(super) fn table(list: &SessionList, now: Timestamp, screen: Screen) -> String {
    if list.sessions.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 4]> = list.sessions.iter().map(|session| row(session, now)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [widest(0), widest(1), widest(2)];
    let width = screen.width.unwrap_or(DEFAULT_WIDTH);
    let room = width.saturating_sub(widths.iter().sum::<usize>() + 8).max(MIN_TEXT);
    let lines = rows.iter().zip(&list.sessions).map(|(row, session)| {
        let mark = match (session.is_streaming, session.live) {
            (true, _) => "*",
            (false, true) => "+",
            (false, false) => " ",
        };
        let mark = if session.live { screen.paint("32", mark) } else { mark.to_owned() };
        let line = format!(
            "{mark} {:<a$}  {:>b$}  {:>c$}  {}",
            row[0],
            row[1],
            row[2],
            cut(&row[3], room),
            a = widths[0],
            b = widths[1],
            c = widths[2]
        );
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn row(session: &SessionInfo, now: Timestamp) -> [String; 4] {
    [short_id(&session.id), ago(&session.modified, now), session.message_count.to_string(), about(session)]
}

/// What a session is about: its folder, and its name or else the first words of its user.
pub(in crate::commands) fn about(session: &SessionInfo) -> String {
    let text = session.name.as_deref().unwrap_or(&session.first_message);
    let folder = session.cwd.rsplit('/').next().unwrap_or_default();
    format!("{}: {}", one_line(folder), one_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sessions::example;

    const NOW: &str = "2026-11-21T14:04:42.892Z";

    fn session(id: &str, modified: &str, about: &str, live: bool, is_streaming: bool) -> SessionInfo {
        let (modified, first_message) = (modified.into(), about.into());
        SessionInfo { modified, first_message, live, is_streaming, ..example(id) }
    }

    #[test]
    fn a_line_for_each_with_live_ones_marked() {
        let sessions = vec![
            session("0198c0de-0000-7000", "2026-11-21T14:04:42.892Z", "What\nis this?", true, true),
            session("0198c0dd-1111-7000", "2026-11-19T11:00:00Z", &"long ".repeat(40), true, false),
            session("x", "2026-11-19T11:00:00Z", "", false, false),
        ];
        let (now, screen) = (NOW.parse().unwrap(), Screen { width: Some(60), ..Screen::default() });
        let text = table(&SessionList { sessions, cursor: None, unreadable: Vec::new() }, now, screen);
        assert_eq!(
            text,
            "* 0198c0de-0000  now  12  project: What is this?\n\
             + 0198c0dd-1111   2d  12  project: long long long long long…\n\
             \u{20} x               2d  12  project:\n"
        );
        assert_eq!(
            table(&SessionList { sessions: Vec::new(), cursor: None, unreadable: Vec::new() }, now, screen),
            ""
        );
    }
}
