//! The table of sessions.

use agentd_protocol::daemon::{SessionInfo, SessionList};

use crate::render::{coloured, one_line};

/// What a line holds where nothing says how wide it may be.
const DEFAULT_WIDTH: usize = 120;

/// The least room for the text at the end of a line.
const MIN_TEXT: usize = 20;

/// Characters of an id that are shown: enough to name a session with.
const ID_LENGTH: usize = 13;

/// One line for each session, with what it is about at the end, cut to the width; nothing for no sessions.
pub(super) fn table(list: &SessionList, now_ms: i64, width: Option<usize>, colour: bool) -> String {
    if list.sessions.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 4]> = list.sessions.iter().map(|session| row(session, now_ms)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [widest(0), widest(1), widest(2)];
    let width = width.unwrap_or(DEFAULT_WIDTH);
    let room = width.saturating_sub(widths.iter().sum::<usize>() + 8).max(MIN_TEXT);
    let lines = rows.iter().zip(&list.sessions).map(|(row, session)| {
        let mark = match (session.is_streaming, session.live) {
            (true, _) => "*",
            (false, true) => "+",
            (false, false) => " ",
        };
        let mark = if colour && session.live { coloured("32", mark) } else { mark.to_owned() };
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

fn row(session: &SessionInfo, now_ms: i64) -> [String; 4] {
    let about = match &session.name {
        Some(name) => one_line(name),
        None => one_line(&session.first_message),
    };
    let folder = session.cwd.rsplit('/').next().unwrap_or_default();
    [
        one_line(&session.id).chars().take(ID_LENGTH).collect(),
        ago(&session.modified, now_ms),
        session.message_count.to_string(),
        format!("{}: {about}", one_line(folder)),
    ]
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// How long ago a time was: `now`, `5m`, `3h`, `2d`.
fn ago(time: &str, now_ms: i64) -> String {
    let Some(then) = unix_ms(time) else { return one_line(time) };
    let minutes = now_ms.saturating_sub(then).max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}

/// Unix milliseconds of `2026-11-21T14:02:03.456Z`; `None` for any other form.
fn unix_ms(time: &str) -> Option<i64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str| text.parse::<i64>().ok();
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let milliseconds = number(&format!("{fraction:0<3}")[..3])?;
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let shifted = if month > 2 { year } else { year - 1 };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_269_882_892;

    fn session(id: &str, modified: &str, about: &str, live: bool, is_streaming: bool) -> SessionInfo {
        SessionInfo {
            id: id.into(),
            path: None,
            cwd: "/home/u/project".into(),
            name: None,
            created: modified.into(),
            modified: modified.into(),
            message_count: 12,
            first_message: about.into(),
            parent_id: None,
            live,
            is_streaming,
            clients: 0,
        }
    }

    #[test]
    fn times() {
        assert_eq!(unix_ms("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(unix_ms("2026-11-21T14:04:42.892Z"), Some(NOW));
        assert_eq!(unix_ms("2024-02-29T12:00:00Z"), Some(1_709_208_000_000));
        assert_eq!(unix_ms("yesterday"), None);
        for (time, expected) in [
            ("2026-11-21T14:04:42.892Z", "now"),
            ("2026-11-21T14:04:50Z", "now"),
            ("2026-11-21T13:59:00Z", "5m"),
            ("2026-11-21T11:00:00Z", "3h"),
            ("2026-11-19T11:00:00Z", "2d"),
        ] {
            assert_eq!(ago(time, NOW), expected, "{time}");
        }
    }

    #[test]
    fn a_line_for_each_with_live_ones_marked() {
        let sessions = vec![
            session("0198c0de-0000-7000", "2026-11-21T14:04:42.892Z", "What\nis this?", true, true),
            session("0198c0dd-1111-7000", "2026-11-19T11:00:00Z", &"long ".repeat(40), true, false),
            session("x", "2026-11-19T11:00:00Z", "", false, false),
        ];
        let text = table(&SessionList { sessions, cursor: None }, NOW, Some(60), false);
        assert_eq!(
            text,
            "* 0198c0de-0000  now  12  project: What is this?\n\
             + 0198c0dd-1111   2d  12  project: long long long long long…\n\
             \u{20} x               2d  12  project:\n"
        );
        assert_eq!(table(&SessionList { sessions: Vec::new(), cursor: None }, NOW, None, true), "");
    }
}
