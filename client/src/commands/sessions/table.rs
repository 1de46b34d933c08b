//! The list of sessions: a table for a terminal, lines with tabs for a program.

use agentd_protocol::daemon::SessionInfo;
use jiff::Timestamp;

use crate::render::{Screen, ago, columns, cut, cut_begin, model_id, one_line, padded, title};

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

/// The blanks between columns.
const GAP: usize = 2;

/// The columns of the mark before each id, with its blank.
const MARK: usize = 2;

/// The width that titles keep as long as another column can be left out.
const LEAST_TITLE: usize = 24;

/// The least width of a title.
const MIN_TITLE: usize = 8;

/// The greatest width of a model's or a folder's name.
const MOST_NAME: usize = 24;

/// The characters of an id that are shown, unless two sessions of the list share them.
const ID_LENGTH: usize = 13;

const GREEN: &str = "32";
const BOLD: &str = "1";
const DIM: &str = "2";

/// A column besides id and title, which are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Model,
    Turns,
    Cost,
    Age,
    Folder,
}

/// The columns after the title, in their order.
const COLUMNS: [Column; 5] = [Column::Model, Column::Turns, Column::Cost, Column::Age, Column::Folder];

/// The columns that are left out where titles would be too short, the least important first.
const DISPENSABLE: [Column; 4] = [Column::Model, Column::Cost, Column::Turns, Column::Folder];

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Model => "MODEL",
            Self::Turns => "TURNS",
            Self::Cost => "COST",
            Self::Age => "AGE",
            Self::Folder => "FOLDER",
        }
    }

    fn is_right(self) -> bool {
        matches!(self, Self::Turns | Self::Cost | Self::Age)
    }

    fn cell(self, session: &SessionInfo, now: Timestamp, home: Option<&str>) -> String {
        match self {
            Self::Model => cut(model_id(session).as_deref().unwrap_or("-"), MOST_NAME),
            Self::Turns => session.turns.to_string(),
            Self::Cost => cost(session.cost),
            Self::Age => ago(&session.modified, now),
            Self::Folder => cut_begin(&one_line(&below_home(&session.cwd, home)), MOST_NAME),
        }
    }
}

/// Cells of one column, with its width.
struct Cells {
    column: Column,
    cells: Vec<String>,
    width: usize,
}

/// A table with a header, each line cut to the width; empty without sessions. `*` is at work, `+` is in the daemon's memory.
pub(super) fn table(
    sessions: &[SessionInfo],
    now: Timestamp,
    screen: Screen,
    home: Option<&str>,
    with_folder: bool,
) -> String {
    if sessions.is_empty() {
        return String::new();
    }
    let ids = short_ids(sessions);
    let id_width = ids.iter().map(|id| columns(id)).max().unwrap_or_default();
    let titles: Vec<String> = sessions.iter().map(shown_title).collect();
    let widest = titles.iter().map(|title| columns(title)).max().unwrap_or_default().max(columns("TITLE"));
    let mut shown: Vec<Cells> = COLUMNS
        .into_iter()
        .filter(|column| with_folder || *column != Column::Folder)
        .map(|column| {
            let cells: Vec<String> = sessions.iter().map(|session| column.cell(session, now, home)).collect();
            let width = cells.iter().map(|cell| columns(cell)).max().unwrap_or_default();
            Cells { column, cells, width: width.max(columns(column.head())) }
        })
        .collect();
    let width = screen.width.unwrap_or(DEFAULT_WIDTH);
    let room = |shown: &[Cells]| {
        let others: usize = shown.iter().map(|cells| GAP + cells.width).sum();
        width.saturating_sub(MARK + id_width + GAP + others)
    };
    for column in DISPENSABLE {
        if room(&shown) < widest.min(LEAST_TITLE) {
            shown.retain(|cells| cells.column != column);
        }
    }
    let title_width = room(&shown).max(MIN_TITLE).min(widest);
    let gap = " ".repeat(GAP);
    let line = |id: &str, title: &str, cell: &dyn Fn(&Cells) -> String| {
        let mut parts =
            vec![padded(id, id_width, false), padded(&cut(title, title_width), title_width, false)];
        parts.extend(shown.iter().map(|cells| padded(&cell(cells), cells.width, cells.column.is_right())));
        parts.join(&gap).trim_end().to_owned()
    };
    let head = line("ID", "TITLE", &|cells| cells.column.head().to_owned());
    let mut text = format!("{}{}\n", " ".repeat(MARK), screen.paint(BOLD, &head));
    for (at, session) in sessions.iter().enumerate() {
        let mark = match (session.is_streaming, session.live) {
            (true, _) => screen.paint(GREEN, "*"),
            (false, true) => screen.paint(GREEN, "+"),
            (false, false) => " ".to_owned(),
        };
        let line = line(&ids[at], &titles[at], &|cells| cells.cells[at].clone());
        let line = if session.first_message.is_empty() { screen.paint(DIM, &line) } else { line };
        text.push_str(&format!("{mark} {line}\n"));
    }
    text
}

/// A line for each session, with tabs between its parts: the whole id, title, model, turns, dollars, time of the last change, folder,
/// state. No part holds a tab or steers a terminal.
pub(super) fn lines(sessions: &[SessionInfo]) -> String {
    let line = |session: &SessionInfo| {
        let state = match (session.is_streaming, session.live) {
            (true, _) => "working",
            (false, true) => "loaded",
            (false, false) => "unloaded",
        };
        let (turns, cost) = (session.turns.to_string(), session.cost.to_string());
        let parts = [
            one_line(&session.id),
            title(session),
            one_line(session.model.as_deref().unwrap_or_default()),
            turns,
            cost,
            one_line(&session.modified),
            one_line(&session.cwd),
            state.to_owned(),
        ];
        parts.join("\t") + "\n"
    };
    sessions.iter().map(line).collect()
}

fn shown_title(session: &SessionInfo) -> String {
    Some(title(session)).filter(|title| !title.is_empty()).unwrap_or_else(|| "(no messages)".to_owned())
}

/// The beginnings of ids that tell the sessions of the list apart.
fn short_ids(sessions: &[SessionInfo]) -> Vec<String> {
    let ids: Vec<String> = sessions.iter().map(|session| one_line(&session.id)).collect();
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let shared = |two: &[&str]| two[0].chars().zip(two[1].chars()).take_while(|(a, b)| a == b).count();
    let length = sorted.windows(2).map(|two| shared(two) + 1).max().unwrap_or_default().max(ID_LENGTH);
    ids.iter().map(|id| id.chars().take(length).collect()).collect()
}

/// The folder, with `~` for the user's home.
fn below_home(folder: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches('/')).filter(|home| !home.is_empty());
    match home.and_then(|home| folder.strip_prefix(home)) {
        Some(below) if below.is_empty() || below.starts_with('/') => format!("~{below}"),
        _ => folder.to_owned(),
    }
}

/// Dollars and cents; nothing is a dash.
fn cost(dollars: f64) -> String {
    match dollars {
        0.0 => "-".to_owned(),
        0.0..0.01 => "<$0.01".to_owned(),
        _ => format!("${dollars:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    const NOW: &str = "2026-11-21T14:04:42.892Z";

    fn session(id: &str, about: &str, cwd: &str, state: (bool, bool)) -> SessionInfo {
        SessionInfo {
            modified: "2026-11-19T11:00:00Z".into(),
            first_message: about.into(),
            cwd: cwd.into(),
            live: state.0,
            is_streaming: state.1,
            turns: 12,
            cost: 1.234,
            model: Some("anthropic/claude-sonnet-4-5".into()),
            ..example(id)
        }
    }

    fn three() -> Vec<SessionInfo> {
        vec![
            session("0198c0de-0000-7000-1", "What\nis this?", "/home/u/project", (true, true)),
            session("0198c0dd-1111-7000-2", &"日本語 ".repeat(40), "/home/u", (true, false)),
            SessionInfo { cost: 0.0, model: None, turns: 0, ..session("x", "", "/srv/data", (false, false)) },
        ]
    }

    fn shown(sessions: &[SessionInfo], width: usize, with_folder: bool) -> Vec<String> {
        let screen = Screen { width: Some(width), ..Screen::default() };
        let text = table(sessions, NOW.parse().unwrap(), screen, Some("/home/u/"), with_folder);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for line in &lines {
            assert!(columns(line) <= width, "{width}: {line:?}");
        }
        lines
    }

    #[test]
    fn a_wide_screen_has_all_columns() {
        assert_eq!(
            shown(&three(), 120, true),
            [
                "  ID             TITLE                                                   MODEL              TURNS   COST  AGE  FOLDER",
                "* 0198c0de-0000  What is this?                                           claude-sonnet-4-5     12  $1.23   2d  ~/project",
                "+ 0198c0dd-1111  日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本…  claude-sonnet-4-5     12  $1.23   2d  ~",
                "  x              (no messages)                                           -                      0      -   2d  /srv/data",
            ]
        );
    }

    #[test]
    fn a_narrow_screen_leaves_columns_out_and_keeps_titles() {
        assert_eq!(
            shown(&three(), 70, false)[..2],
            [
                "  ID             TITLE                               TURNS   COST  AGE",
                "* 0198c0de-0000  What is this?                          12  $1.23   2d",
            ]
        );
        assert_eq!(
            shown(&three(), 50, true)[..3],
            [
                "  ID             TITLE                         AGE",
                "* 0198c0de-0000  What is this?                  2d",
                "+ 0198c0dd-1111  日本語 日本語 日本語 日本語…   2d",
            ]
        );
    }

    #[test]
    fn no_width_makes_a_line_longer() {
        for width in 40..=220 {
            for with_folder in [true, false] {
                assert_eq!(shown(&three(), width, with_folder).len(), 4);
            }
        }
        assert_eq!(table(&[], NOW.parse().unwrap(), Screen::default(), None, true), "");
    }

    #[test]
    fn ids_are_long_enough_to_tell_sessions_apart() {
        let ids = ["01a20f3a-d3b0-7000-8000-1", "01a20f3a-d3b0-7000-8000-2"];
        let sessions: Vec<SessionInfo> = ids.iter().map(|id| example(id)).collect();
        assert_eq!(short_ids(&sessions), ids);
        assert_eq!(short_ids(&sessions[..1]), ["01a20f3a-d3b0"]);
    }

    #[test]
    fn a_program_gets_everything_between_tabs() {
        let mut one = session("a\u{1b}", "What\tis\nthis?", "/p", (true, false));
        one.name = Some(" The\tname\u{1b}[31m ".into());
        assert_eq!(
            lines(&[one, example("b")]),
            "a \tThe name [31m\tanthropic/claude-sonnet-4-5\t12\t1.234\t2026-11-19T11:00:00Z\t/p\tloaded\n\
             b\tWhat is this?\t\t3\t0\t2026-11-21T14:04:00.000Z\t/home/u/project\tunloaded\n"
        );
    }

    #[test]
    fn sums_and_folders_are_short() {
        assert_eq!([0.0, 0.000_1, 0.01, 12.345].map(cost), ["-", "<$0.01", "$0.01", "$12.35"]);
        for (folder, expected) in
            [("/home/u", "~"), ("/home/u/a", "~/a"), ("/home/user2", "/home/user2"), ("/", "/")]
        {
            assert_eq!(below_home(folder, Some("/home/u")), expected);
        }
        assert_eq!(below_home("/a", Some("/")), "/a");
    }
}
