//! The table as lines of text, as wide as the screen.

use agentd_protocol::daemon::{ActivityState, DaemonStatus};

use super::sessions::{TopSession, TopSessions};
use crate::{
    cli::TopSort,
    render::{
        Screen, activity_text, columns, counted, cut, cut_begin, money, one_line, padded, short_count,
        short_id, short_time,
    },
};

/// The width of a table that nothing limits.
const DEFAULT_WIDTH: usize = 160;

/// The least width of the title; columns that say less leave before it becomes narrower.
const MIN_TITLE: usize = 14;

/// The widest that columns of free text become.
const MAX_FOLDER: usize = 32;
const MAX_MODEL: usize = 28;
const MAX_STATE: usize = 44;

/// The columns between two columns.
const GAP: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Session,
    State,
    Rate,
    Context,
    Tokens,
    Cost,
    Commands,
    Model,
    Folder,
    Title,
}

/// All columns, in their order.
const COLUMNS: [Column; 10] = [
    Column::Session,
    Column::State,
    Column::Rate,
    Column::Context,
    Column::Tokens,
    Column::Cost,
    Column::Commands,
    Column::Model,
    Column::Folder,
    Column::Title,
];

/// The columns that leave a narrow screen, the first one first.
const LEAVING: [Column; 7] = [
    Column::Commands,
    Column::Folder,
    Column::Model,
    Column::Tokens,
    Column::Context,
    Column::Cost,
    Column::Rate,
];

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Session => "SESSION",
            Self::State => "STATE",
            Self::Rate => "TOK/S",
            Self::Context => "CTX",
            Self::Tokens => "TOKENS",
            Self::Cost => "COST",
            Self::Commands => "CMDS",
            Self::Model => "MODEL",
            Self::Folder => "FOLDER",
            Self::Title => "TITLE",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Rate | Self::Context | Self::Tokens | Self::Cost | Self::Commands)
    }

    /// The order that sorts by it, marked in its head.
    fn sort(self) -> Option<TopSort> {
        match self {
            Self::State => Some(TopSort::State),
            Self::Rate => Some(TopSort::Rate),
            Self::Context => Some(TopSort::Context),
            Self::Tokens => Some(TopSort::Tokens),
            Self::Cost => Some(TopSort::Cost),
            Self::Title => Some(TopSort::Title),
            Self::Session | Self::Commands | Self::Model | Self::Folder => None,
        }
    }

    fn cell(self, row: &TopSession, now_ms: i64) -> String {
        let activity = row.activity.as_ref();
        match self {
            Self::Session => short_id(&row.session.id),
            Self::State => match activity {
                Some(activity) => cut(&activity_text(activity, now_ms), MAX_STATE),
                None => if row.session.is_streaming { "at work" } else { "idle" }.to_owned(),
            },
            Self::Rate => row.tokens_per_second.map(|rate| format!("{rate:.0}")).unwrap_or_default(),
            Self::Context => {
                row.context_share().map(|share| format!("{:.0}%", share * 100.0)).unwrap_or_default()
            }
            Self::Tokens => activity.map(|_| short_count(row.tokens())).unwrap_or_default(),
            Self::Cost => activity.map(|activity| money(activity.cost)).unwrap_or_default(),
            Self::Commands => match activity.map_or(0, |activity| activity.commands) {
                0 => String::new(),
                count => count.to_string(),
            },
            Self::Model => {
                activity.map(|activity| cut(&one_line(&activity.model_id), MAX_MODEL)).unwrap_or_default()
            }
            Self::Folder => cut_begin(&one_line(&row.session.cwd), MAX_FOLDER),
            Self::Title => {
                one_line(row.session.name.as_deref().unwrap_or(&row.session.first_message)).trim().to_owned()
            }
        }
    }
}

/// How the table is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableView<'a> {
    pub(super) screen: Screen,
    pub(super) sort: TopSort,
    /// The session that keys work on.
    pub(super) selected: Option<&'a str>,
    pub(super) now_ms: i64,
}

/// The line about the daemon and the sums.
pub(super) fn header(status: &DaemonStatus, uptime_s: u64, sessions: &TopSessions, screen: Screen) -> String {
    let at_work = sessions.all().filter(|row| row.is_at_work()).count();
    // A sum of no floats would be minus zero.
    let rate = sessions.all().filter_map(|row| row.tokens_per_second).fold(0.0, |sum, rate| sum + rate);
    let cost = sessions.all().map(TopSession::cost).fold(0.0, |sum, cost| sum + cost);
    let mut parts = vec![
        format!("agentd {}", one_line(&status.daemon.version)),
        format!("up {}", short_time(uptime_s)),
        counted(status.clients as usize, "client"),
    ];
    parts.extend(status.memory_bytes.map(|bytes| format!("{:.1} MB", bytes as f64 / 1e6)));
    parts.push(format!("{at_work} of {} at work", counted(sessions.len(), "session")));
    parts.extend((rate > 0.0).then(|| format!("{rate:.0} tokens/s")));
    parts.push(money(cost));
    parts.extend(status.ending.map(|_| "ending".to_owned()));
    let line = parts.join(" · ");
    screen.paint("1", &screen.width.map_or_else(|| line.clone(), |width| cut(&line, width)))
}

/// The heads of the columns, and a line for each session.
pub(super) fn table(rows: &[&TopSession], view: &TableView<'_>) -> Vec<String> {
    let width = view.screen.width.unwrap_or(DEFAULT_WIDTH);
    let mut shown: Vec<(Column, Vec<String>, usize)> = COLUMNS
        .iter()
        .map(|column| {
            let cells: Vec<String> = rows.iter().map(|row| column.cell(row, view.now_ms)).collect();
            let widest = cells.iter().map(|cell| columns(cell)).max().unwrap_or(0);
            (*column, cells, widest.max(head_width(*column)))
        })
        .collect();
    // Columns without a value say nothing.
    shown.retain(|(column, cells, _)| {
        *column != Column::Commands || cells.iter().any(|cell| !cell.is_empty())
    });
    let room = |shown: &[(Column, Vec<String>, usize)]| {
        // A mark before the selected line, and gaps between the columns.
        let fixed: usize =
            shown.iter().filter(|(column, ..)| *column != Column::Title).map(|(.., width)| width + GAP).sum();
        width.saturating_sub(fixed + GAP)
    };
    for leaving in LEAVING {
        if room(&shown) >= MIN_TITLE {
            break;
        }
        shown.retain(|(column, ..)| *column != leaving);
    }
    let title = room(&shown);
    let line = |cell: &dyn Fn(&(Column, Vec<String>, usize)) -> String| {
        let cells: Vec<String> = shown
            .iter()
            .map(|shown| match shown.0 {
                Column::Title => cut(&cell(shown), title),
                column => padded(&cell(shown), shown.2, column.is_number()),
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let mut lines =
        vec![view.screen.paint("2", &cut(&format!("  {}", line(&|shown| head(shown.0, view.sort))), width))];
    for (at, row) in rows.iter().enumerate() {
        let is_selected = view.selected == Some(row.session.id.as_str());
        let mark = if is_selected { "> " } else { "  " };
        let text = cut(&format!("{mark}{}", line(&|shown| shown.1[at].clone())), width);
        lines.push(match colour(row, is_selected) {
            Some(colour) => view.screen.paint(colour, &text),
            None => text,
        });
    }
    lines
}

/// With room for the mark, so that nothing moves when another column has it.
fn head_width(column: Column) -> usize {
    columns(column.head()) + usize::from(column.sort().is_some())
}

fn head(column: Column, sort: TopSort) -> String {
    let mark = if column.sort() == Some(sort) { "*" } else { "" };
    format!("{}{mark}", column.head())
}

/// Inverse for the selected session, yellow for one that waits for the user, green for those at work.
fn colour(row: &TopSession, is_selected: bool) -> Option<&'static str> {
    if is_selected {
        return Some("7");
    }
    match row.activity.as_ref().map(|activity| activity.state) {
        Some(ActivityState::Asking) => Some("33"),
        _ if row.is_at_work() => Some("32"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::daemon::{RunningWork, SessionActivity, SessionInfo};

    use super::*;
    use crate::render::{example_activity, example_session};

    fn sessions() -> TopSessions {
        let first = SessionInfo { live: true, is_streaming: true, ..example_session("01a20f3a-d3b0-7") };
        let second = SessionInfo {
            live: true,
            name: Some("名\x1b[2J\n前".into()),
            cwd: "/home/me/a/very/long/path/to/the/folder/of/the/project".into(),
            ..example_session("01b20f3a-d3b0-7")
        };
        let running = SessionActivity {
            state: ActivityState::Running,
            running: vec![RunningWork {
                tool: "bash".into(),
                subject: Some("cargo test".into()),
                since_ms: Some(0),
            }],
            since_ms: Some(0),
            commands: 1,
            ..example_activity("01a20f3a-d3b0-7")
        };
        TopSessions::new(vec![first, second], vec![running, example_activity("01b20f3a-d3b0-7")], 0)
    }

    fn lines(width: Option<usize>, colour: bool) -> Vec<String> {
        let sessions = sessions();
        let view = TableView {
            screen: Screen { width, colour, is_terminal: true },
            sort: TopSort::State,
            selected: Some("01b20f3a-d3b0-7"),
            now_ms: 12_000,
        };
        table(&sessions.sorted(view.sort), &view)
    }

    #[test]
    fn a_line_for_each_session() {
        assert_eq!(
            lines(None, false),
            [
                "  SESSION        STATE*                      TOK/S   CTX   TOKENS     COST  CMDS  MODEL   FOLDER                            TITLE",
                "  01a20f3a-d3b0  running `cargo test` 12 s           25%     1.2k  $0.2500     1  claude  /home/u/project                   What is this?",
                "> 01b20f3a-d3b0  idle                                25%     1.2k  $0.2500        claude  …th/to/the/folder/of/the/project  名 [2J 前",
            ]
        );
    }

    #[test]
    fn every_line_fits_every_width() {
        for width in 10..200 {
            for line in lines(Some(width), false) {
                assert!(columns(&line) <= width, "{width}: {line:?}");
                assert!(!line.contains(['\x1b', '\n']), "{line:?}");
            }
        }
        let narrow = lines(Some(50), false);
        assert!(narrow[1].contains("01a20f3a-d3b0") && narrow[1].contains("running"), "{narrow:?}");
        assert!(!narrow[0].contains("MODEL"), "{narrow:?}");
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let coloured = lines(Some(120), true);
        assert!(coloured[1].starts_with("\x1b[32m") && coloured[2].starts_with("\x1b[7m> "), "{coloured:?}");
        assert!(lines(Some(120), false).iter().all(|line| !line.contains('\x1b')));
    }
}
