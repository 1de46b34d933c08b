//! The table on a terminal: drawn when something changes, and worked with by keys.

use std::{future::Future, io, pin::Pin, time::Duration};

use agentd_protocol::{
    command::{AbortParams, AbortScope, NoParams},
    daemon::DaemonStatus,
};
use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::{
    sessions::{TopSession, TopSessions},
    table::{TableView, header, table},
    terminal::TableTerminal,
};
use crate::{
    cli::TopSort,
    exit::{Exit, Fault},
    render::{Screen, cut, one_line, short_id},
    rpc::{AbortScoped, CallError, Client, GetDaemonStatus},
    shared_daemon::DaemonConnection,
};

/// The shortest time between two drawings: five a second.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// While something works, times are shown as they pass.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// How old the line about the daemon becomes before a change renews it.
const STATUS_AGE: Duration = Duration::from_secs(2);

/// Lines above and below the table: header, heads of columns, keys.
const OTHER_LINES: usize = 3;

const KEYS: &str = "q quit  ↑↓ select  Enter attach  a abort";

/// Why the table is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiveEnd {
    /// The user is done.
    Quit,
    /// The user wants to attach to this session.
    Attach(String),
}

type Abort<'a> = Pin<Box<dyn Future<Output = Result<(), CallError>> + 'a>>;

/// The table, and what the user is doing with it.
struct LiveTable {
    sessions: TopSessions,
    status: DaemonStatus,
    status_at: Instant,
    sort: TopSort,
    selected: Option<String>,
    /// The session that is aborted when the user says yes, and how much of its work.
    asked: Option<(String, AbortScope)>,
    /// What an abort came to.
    notice: Option<String>,
    height: usize,
}

/// What a key means.
enum Action {
    None,
    Quit,
    Attach(String),
    Abort(String, AbortScope),
    Suspend,
}

/// Shows the table until the user ends it.
///
/// # Errors
/// When the daemon ends, or the terminal cannot be used.
pub(super) async fn show(
    connection: &mut DaemonConnection,
    sessions: TopSessions,
    status: DaemonStatus,
    sort: TopSort,
) -> Result<LiveEnd, Fault> {
    let broken =
        |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot use the terminal: {error}"));
    let mut terminal = TableTerminal::enter().map_err(broken)?;
    let mut keys = EventStream::new();
    let height = terminal_height();
    let status_at = Instant::now();
    let mut live =
        LiveTable { sessions, status, status_at, sort, selected: None, asked: None, notice: None, height };
    let client: &Client = &connection.client;
    let events = &mut connection.incoming.events;
    let mut abort: Option<Abort<'_>> = None;
    let mut drawn = Instant::now();
    live.draw(&mut terminal).map_err(broken)?;
    // When to draw next; `None` while the screen is up to date.
    let mut next: Option<Instant> = live.clock(drawn);
    loop {
        tokio::select! {
            line = events.recv() => {
                let Some(line) = line else {
                    return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd has ended, or closed the connection."));
                };
                let changes = line.event().and_then(|event| live.sessions.apply(event, now_ms()));
                if changes.is_none() {
                    continue;
                }
                if live.status_at.elapsed() >= STATUS_AGE {
                    live.status = client.call::<GetDaemonStatus>(&NoParams {}).await?;
                    live.status_at = Instant::now();
                }
                next = Some(drawn + DRAW_INTERVAL);
            }
            event = keys.next() => {
                let event = match event {
                    Some(Ok(event)) => event,
                    Some(Err(error)) => return Err(broken(error)),
                    None => return Ok(LiveEnd::Quit),
                };
                let action = match event {
                    TerminalEvent::Key(key) => live.key(key),
                    TerminalEvent::Resize(_, rows) => {
                        live.height = usize::from(rows);
                        terminal.clear().map_err(broken)?;
                        Action::None
                    }
                    _ => continue,
                };
                match action {
                    Action::None => {}
                    Action::Quit => return Ok(LiveEnd::Quit),
                    Action::Attach(id) => return Ok(LiveEnd::Attach(id)),
                    Action::Suspend => terminal.suspend().map_err(broken)?,
                    Action::Abort(id, scope) => {
                        live.notice = Some(format!("Stopping {}.", short_id(&id)));
                        abort = Some(Box::pin(async move {
                            let params = AbortParams { scope: Some(scope) };
                            client.call_in::<AbortScoped>(&id, &params).await.map(drop)
                        }));
                    }
                }
                // Keys are answered at once.
                next = Some(Instant::now());
            }
            ended = ended(&mut abort) => {
                abort = None;
                live.notice = ended.err().map(|error| one_line(&error.to_string()));
                next = Some(Instant::now());
            }
            () = sleep_until(next.unwrap_or(drawn)), if next.is_some() => {
                live.draw(&mut terminal).map_err(broken)?;
                drawn = Instant::now();
                next = live.clock(drawn);
            }
        }
    }
}

/// Waits for the answer to an abort, for ever while there is none. Cancel safe.
async fn ended(abort: &mut Option<Abort<'_>>) -> Result<(), CallError> {
    match abort {
        Some(abort) => abort.await,
        None => std::future::pending().await,
    }
}

impl LiveTable {
    /// When the times in the table have to be drawn again.
    fn clock(&self, drawn: Instant) -> Option<Instant> {
        self.sessions.all().any(TopSession::is_at_work).then(|| drawn + CLOCK_INTERVAL)
    }

    fn draw(&mut self, terminal: &mut TableTerminal) -> io::Result<()> {
        let screen = Screen::of_stdout();
        let lines = self.lines(screen);
        terminal.draw(lines)
    }

    fn lines(&mut self, screen: Screen) -> Vec<String> {
        let rows = self.sessions.sorted(self.sort);
        let is_there = |id: &String| self.sessions.get(id).is_some();
        if !self.selected.as_ref().is_some_and(is_there) {
            self.selected = rows.first().map(|row| row.session.id.clone());
        }
        if !self.asked.as_ref().is_some_and(|(id, _)| is_there(id)) {
            self.asked = None;
        }
        let view =
            TableView { screen, sort: self.sort, selected: self.selected.as_deref(), now_ms: now_ms() };
        let uptime = Duration::from_millis(self.status.uptime_ms) + self.status_at.elapsed();
        let mut lines = vec![header(&self.status, uptime.as_secs(), &self.sessions, screen)];
        let mut body = table(&rows, &view);
        // The selected line stays on the screen.
        let room = self.height.saturating_sub(OTHER_LINES).max(1);
        let at = rows.iter().position(|row| Some(row.session.id.as_str()) == view.selected).unwrap_or(0);
        let first = (at + 1).saturating_sub(room);
        lines.push(body.remove(0));
        lines.extend(body.into_iter().skip(first).take(room));
        if rows.is_empty() {
            lines.push("  No session is in memory.".to_owned());
        }
        lines.push(self.last_line(screen));
        lines.truncate(self.height.max(1));
        lines
    }

    fn last_line(&self, screen: Screen) -> String {
        let text = match (&self.asked, &self.notice) {
            (Some((id, AbortScope::All)), _) => {
                format!("Stop all commands of {}, in the background too? y/n", short_id(id))
            }
            (Some((id, _)), _) => format!("Stop the work of {}? y/n", short_id(id)),
            (None, Some(notice)) => notice.clone(),
            (None, None) => format!("{KEYS}  s sort: {}", self.sort.as_str()),
        };
        let text = screen.width.map_or_else(|| text.clone(), |width| cut(&text, width));
        screen.paint("2", &text)
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some((id, scope)) = self.asked.take() {
            return match key.code {
                KeyCode::Char('c') if is_control => Action::Quit,
                KeyCode::Char('y' | 'Y') => Action::Abort(id, scope),
                _ => Action::None,
            };
        }
        self.notice = None;
        match key.code {
            KeyCode::Char('c') if is_control => Action::Quit,
            KeyCode::Char('z') if is_control => Action::Suspend,
            KeyCode::Char('q') | KeyCode::Esc => Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Enter => self.selected.clone().map_or(Action::None, Action::Attach),
            KeyCode::Char('a') => {
                let selected = self.selected.as_deref().and_then(|id| self.sessions.get(id));
                match selected.filter(|row| row.is_at_work()) {
                    Some(row) => {
                        // Without a run it is a command of the user that works.
                        let scope = if row.session.is_streaming { AbortScope::Turn } else { AbortScope::All };
                        self.asked = Some((row.session.id.clone(), scope));
                    }
                    None => self.notice = Some("Nothing is at work there.".to_owned()),
                }
                Action::None
            }
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                Action::None
            }
            _ => Action::None,
        }
    }

    fn select(&mut self, by: isize) -> Action {
        let rows = self.sessions.sorted(self.sort);
        let at = rows.iter().position(|row| Some(&row.session.id) == self.selected.as_ref()).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = rows.get(to).map(|row| row.session.id.clone());
        Action::None
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The lines of the terminal; 24 where it does not say.
fn terminal_height() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::daemon::{Counters, DaemonInfo, DaemonUsage, SessionInfo};

    use super::*;
    use crate::render::{example_activity, example_session};

    fn live(ids: &[&str]) -> LiveTable {
        let sessions = ids
            .iter()
            .map(|id| SessionInfo { live: true, is_streaming: *id == "b", ..example_session(id) })
            .collect();
        let status = DaemonStatus {
            daemon: DaemonInfo { name: "agentd".into(), version: "0.1.0".into(), pid: 7, epoch: "e".into() },
            uptime_ms: 125_000,
            socket: None,
            agent_dir: "/a".into(),
            clients: 2,
            live_sessions: 3,
            unloaded_sessions: 0,
            running_sessions: 1,
            ending: None,
            memory_bytes: Some(12_345_678),
            tasks: 9,
            usage: DaemonUsage::default(),
            counters: Counters::default(),
        };
        LiveTable {
            sessions: TopSessions::new(sessions, vec![example_activity("a")], 0),
            status,
            status_at: Instant::now(),
            sort: TopSort::Title,
            selected: None,
            asked: None,
            notice: None,
            height: 10,
        }
    }

    fn press(live: &mut LiveTable, code: KeyCode) -> Action {
        live.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn selected_line(live: &mut LiveTable) -> String {
        let lines = live.lines(Screen::default());
        lines.into_iter().find(|line| line.starts_with("> ")).unwrap_or_default()
    }

    #[test]
    fn keys_select_and_ask_before_they_stop_work() {
        let mut table = live(&["a", "b", "c"]);
        let first = table.lines(Screen::default());
        assert!(
            first[0]
                .starts_with("agentd 0.1.0 · up 2 min 5 s · 2 clients · 12.3 MB · 1 of 3 sessions at work")
        );
        assert!(first[2].starts_with("> a ") && first.last().unwrap().contains("s sort: title"), "{first:?}");
        press(&mut table, KeyCode::Char('a'));
        assert_eq!(table.lines(Screen::default()).last().unwrap(), "Nothing is at work there.");
        press(&mut table, KeyCode::Down);
        assert!(selected_line(&mut table).starts_with("> b "));
        press(&mut table, KeyCode::Char('a'));
        assert_eq!(table.lines(Screen::default()).last().unwrap(), "Stop the work of b? y/n");
        assert!(matches!(press(&mut table, KeyCode::Char('n')), Action::None));
        assert!(matches!(press(&mut table, KeyCode::Char('y')), Action::None), "nothing is asked");
        press(&mut table, KeyCode::Char('a'));
        assert!(
            matches!(press(&mut table, KeyCode::Char('y')), Action::Abort(id, AbortScope::Turn) if id == "b")
        );
        press(&mut table, KeyCode::Down);
        press(&mut table, KeyCode::Down);
        assert!(matches!(press(&mut table, KeyCode::Enter), Action::Attach(id) if id == "c"));
        press(&mut table, KeyCode::Char('s'));
        assert!(table.lines(Screen::default()).last().unwrap().contains("s sort: state"));
        assert!(matches!(press(&mut table, KeyCode::Char('q')), Action::Quit));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(matches!(table.key(control_c), Action::Quit));
    }

    #[test]
    fn the_selected_session_stays_on_a_small_screen() {
        let names: Vec<String> = (0..30).map(|n| format!("{n:02}")).collect();
        let mut table = live(&names.iter().map(String::as_str).collect::<Vec<_>>());
        table.height = 6;
        for _ in 0..40 {
            press(&mut table, KeyCode::Down);
        }
        let lines = table.lines(Screen::default());
        assert_eq!(lines.len(), 6);
        assert!(lines[4].starts_with("> 29 "), "{lines:?}");
        table.height = 1;
        assert_eq!(table.lines(Screen::default()).len(), 1);
        let mut empty = live(&[]);
        assert!(empty.lines(Screen::default()).contains(&"  No session is in memory.".to_owned()));
        assert!(matches!(press(&mut empty, KeyCode::Enter), Action::None));
    }
}
