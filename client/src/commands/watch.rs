//! `agentctl watch`: prints a line for each change of any session.

use std::{collections::HashMap, io};

use agentd_protocol::{
    daemon::{ListSessionsParams, Role, SessionInfo, WatchSessionsParams},
    event::Event,
};
use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::mpsc;

use super::daemon_call;
use crate::{
    cli::WatchOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output::{Output, OutputChunk},
    render::{Screen, clock, counted, cut, one_line, session_title, short_id},
    rpc::{Client, EventLine, ListSessions, WatchSessions},
    shared_daemon::DaemonConnection,
};

/// Prints changes until Ctrl-C, or the end of the daemon.
pub(crate) fn run(options: &WatchOptions) -> Exit {
    let ended = daemon_call::block_on(watch(options));
    conclude(match ended {
        // Ctrl-C is the normal end.
        Err(fault) if fault.exit == Exit::Interrupted => Ok(Exit::Answered),
        ended => ended,
    })
}

async fn watch(options: &WatchOptions) -> Result<Exit, Fault> {
    let mut connection = daemon_call::require(Role::Observe).await?;
    let mut output = Output::start()
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}")))?;
    let chunks = output.sender();
    // Watching begins before the first list, so that no change is missed.
    let watching = connection.client.call::<WatchSessions>(&WatchSessionsParams::default()).await;
    watching?;
    let ended = tokio::select! {
        ended = show(&mut connection, options, &chunks) => ended,
        error = output.broken() => return closed(&error),
    };
    drop(chunks);
    // All lines come before the reason for the end.
    match (output.finish().await, ended) {
        (Ok(()), ended) => ended,
        (Err(error), _) => closed(&error),
    }
}

fn closed(error: &io::Error) -> Result<Exit, Fault> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(Exit::OutputClosed);
    }
    Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}")))
}

async fn show(
    connection: &mut DaemonConnection,
    options: &WatchOptions,
    chunks: &mpsc::Sender<OutputChunk>,
) -> Result<Exit, Fault> {
    let mut view = WatchView::new();
    if !options.json {
        look(&connection.client, &mut view, chunks).await?;
    }
    // A program that starts what it watches waits for this line.
    print_stderr("Watching; Ctrl-C ends it.");
    while let Some(line) = connection.incoming.events.recv().await {
        if options.json {
            put(chunks, line.text + "\n").await;
        } else if view.lost(&line) {
            look(&connection.client, &mut view, chunks).await?;
        } else {
            put(chunks, view.lines(&line)).await;
        }
    }
    Err(Fault::new(Exit::NoDaemon, "agentctl: agentd has ended, or closed the connection."))
}

/// Lists the live sessions, and prints what is new about them.
async fn look(
    client: &Client,
    view: &mut WatchView,
    chunks: &mpsc::Sender<OutputChunk>,
) -> Result<(), Fault> {
    let mut params =
        ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    loop {
        let list = client.call::<ListSessions>(&params).await?;
        for session in list.sessions {
            let told = view.changes.found(session);
            put(chunks, view.stamped(told)).await;
        }
        params.cursor = list.cursor;
        if params.cursor.is_none() {
            return Ok(());
        }
    }
}

async fn put(chunks: &mpsc::Sender<OutputChunk>, text: String) {
    if !text.is_empty() {
        // Fails only when the writer has ended, which `broken` reports.
        let _ = chunks.send(OutputChunk::Out(text.into_bytes())).await;
    }
}

/// Events as lines with the time.
struct WatchView {
    changes: SessionChanges,
    zone: TimeZone,
}

impl WatchView {
    fn new() -> Self {
        Self { changes: SessionChanges::new(Screen::of_stdout()), zone: TimeZone::system() }
    }

    /// Whether the daemon dropped events, since we were too slow.
    fn lost(&self, line: &EventLine) -> bool {
        matches!(line.event(), Some(Event::Lagged(_)))
    }

    fn lines(&mut self, line: &EventLine) -> String {
        let told = match line.event() {
            Some(Event::SessionOpened(opened)) => self.changes.opened(opened.session),
            Some(Event::SessionChanged(changed)) => self.changes.changed(changed.session),
            Some(Event::SessionClosed(closed)) => self.changes.closed(&closed.session_id),
            _ => None,
        };
        self.stamped(told)
    }

    fn stamped(&self, told: Option<String>) -> String {
        told.map(|told| format!("{}  {told}\n", clock(Timestamp::now(), &self.zone))).unwrap_or_default()
    }
}

/// The least width of a session's title.
const MIN_ABOUT: usize = 16;

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

/// The width of `14:02:03  ` before a line.
const STAMP: usize = 10;

/// The width of the column of changes. A longer text moves the title.
const HAPPENED: usize = 22;

/// The last known state of the sessions that are in memory, or were.
struct SessionChanges {
    screen: Screen,
    sessions: HashMap<String, SessionInfo>,
}

impl SessionChanges {
    fn new(screen: Screen) -> Self {
        Self { screen, sessions: HashMap::new() }
    }

    /// A session of the list: its whole state at first, later only what is new.
    fn found(&mut self, session: SessionInfo) -> Option<String> {
        if self.sessions.contains_key(&session.id) {
            return self.changed(session);
        }
        let state = if session.is_streaming { "at work" } else { "idle" };
        let mut parts = vec![state.to_owned()];
        parts.extend((session.clients > 0).then(|| clients(&session)));
        self.record(session, &parts)
    }

    fn opened(&mut self, session: SessionInfo) -> Option<String> {
        // The list may have had the session already.
        if self.sessions.contains_key(&session.id) {
            return self.changed(session);
        }
        let mut parts = vec!["opened".to_owned()];
        parts.extend(session.is_streaming.then(|| "at work".to_owned()));
        self.record(session, &parts)
    }

    /// The current state of a session; `None` when no change is worth a line.
    fn changed(&mut self, session: SessionInfo) -> Option<String> {
        let parts = match self.sessions.get(&session.id) {
            Some(before) => differences(before, &session),
            // The session was loaded after the list was made.
            None if session.live => vec!["in memory".to_owned()],
            None => Vec::new(),
        };
        if parts.is_empty() {
            self.sessions.insert(session.id.clone(), session);
            return None;
        }
        self.record(session, &parts)
    }

    fn closed(&mut self, id: &str) -> Option<String> {
        let parts = ["closed".to_owned()];
        match self.sessions.remove(id) {
            Some(session) => Some(self.line(&session, &parts)),
            None => Some(format!("{}  closed", short_id(id))),
        }
    }

    fn record(&mut self, session: SessionInfo, parts: &[String]) -> Option<String> {
        let line = self.line(&session, parts);
        self.sessions.insert(session.id.clone(), session);
        Some(line)
    }

    /// Such as `0198c0de-7a51  at work, 2 clients  project: What is this?`.
    fn line(&self, session: &SessionInfo, parts: &[String]) -> String {
        let (id, happened) = (short_id(&session.id), parts.join(", "));
        let happened = format!("{happened:<HAPPENED$}");
        let used = STAMP + id.chars().count() + happened.chars().count() + 4;
        let room = self.screen.width.unwrap_or(DEFAULT_WIDTH).saturating_sub(used).max(MIN_ABOUT);
        let colour = match parts.first().map(String::as_str) {
            Some("at work") => "32",
            Some("closed" | "left memory") => "2",
            _ => "0",
        };
        let happened = self.screen.paint(colour, &happened);
        let line = format!("{id}  {happened}  {}", cut(&session_title(session), room));
        line.trim_end().to_owned()
    }
}

fn differences(before: &SessionInfo, now: &SessionInfo) -> Vec<String> {
    let mut parts = Vec::new();
    let mut say = |part: String| parts.push(part);
    if before.is_streaming != now.is_streaming {
        say(if now.is_streaming { "at work" } else { "idle" }.into());
    }
    if before.live != now.live {
        say(if now.live { "in memory" } else { "left memory" }.into());
    }
    if before.name != now.name {
        say(match &now.name {
            Some(name) => format!("renamed to {}", one_line(name)),
            None => "name removed".into(),
        });
    }
    if before.clients != now.clients {
        say(clients(now));
    }
    parts
}

fn clients(session: &SessionInfo) -> String {
    match session.clients {
        0 => "no client".into(),
        count => counted(count as usize, "client"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    fn live(id: &str) -> SessionInfo {
        SessionInfo { live: true, ..example(id) }
    }

    #[test]
    fn each_change_is_told_once() {
        let mut changes = SessionChanges::new(Screen::default());
        let idle = SessionInfo { clients: 1, ..live("0198c0de-7a51-x") };
        let busy = SessionInfo { is_streaming: true, message_count: 13, ..idle.clone() };
        let named = SessionInfo { name: Some("a\x1b\nb".into()), clients: 2, ..busy.clone() };
        let unloaded = SessionInfo { live: false, clients: 0, is_streaming: false, ..named.clone() };
        let line = |happened: &str, about: &str| {
            Some(format!("{:<37}  project: {about}", format!("0198c0de-7a51  {happened}")))
        };
        assert_eq!(changes.found(idle.clone()), line("idle, 1 client", "What is this?"));
        assert_eq!(changes.changed(SessionInfo { message_count: 13, ..idle.clone() }), None);
        assert_eq!(changes.opened(idle), None);
        assert_eq!(changes.changed(busy.clone()), line("at work", "What is this?"));
        assert_eq!(changes.found(busy), None);
        assert_eq!(changes.changed(named), line("renamed to a  b, 2 clients", "a b"));
        assert_eq!(changes.changed(unloaded.clone()), line("idle, left memory, no client", "a b"));
        assert_eq!(changes.changed(SessionInfo { live: true, ..unloaded.clone() }), line("in memory", "a b"));
        assert_eq!(
            changes.changed(SessionInfo { name: None, ..unloaded }),
            line("left memory, name removed", "What is this?")
        );
        assert_eq!(changes.closed("0198c0de-7a51-x"), line("closed", "What is this?"));
        assert_eq!(changes.closed("0198c0de-7a51-x"), Some("0198c0de-7a51  closed".into()));
    }

    #[test]
    fn new_sessions_are_opened() {
        let mut changes = SessionChanges::new(Screen { colour: true, ..Screen::default() });
        let working = SessionInfo { is_streaming: true, first_message: String::new(), ..live("a") };
        let told = changes.opened(working).unwrap();
        assert!(told.contains("opened, at work") && told.ends_with("project:"), "{told:?}");
        assert!(changes.changed(live("b")).unwrap().contains("in memory"));
        assert_eq!(changes.changed(example("c")), None);
    }

    #[test]
    fn narrow_terminals_cut_what_it_is_about() {
        let mut changes = SessionChanges::new(Screen { width: Some(60), ..Screen::default() });
        let long = SessionInfo { first_message: "long ".repeat(30), ..live("0198c0de-7a51-x") };
        let told = changes.opened(long).unwrap();
        assert!(told.chars().count() + STAMP <= 60 + MIN_ABOUT && told.ends_with('…'), "{told}");
    }
}
