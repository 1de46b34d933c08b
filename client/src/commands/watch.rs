//! `agentctl watch`: what all sessions do, as it happens.

mod changes;

use agentd_protocol::{
    command::NoParams,
    daemon::{ListSessionsParams, Role},
    event::Event,
};
use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::mpsc;

use self::changes::Board;
use super::{daemon, live, one_call};
use crate::{
    cli::WatchOptions,
    connect::socket::Connection,
    exit::{Exit, Fault, tell},
    output::{Chunk, Output},
    render::{Screen, clock},
    rpc::{Client, EventLine, ListSessions, WatchSessions},
};

/// Tells what sessions do until Ctrl-C, or the end of the daemon.
pub(crate) fn run(options: &WatchOptions) -> Exit {
    let ended = daemon::block_on(watch(options));
    one_call::conclude(match ended {
        // Ctrl-C is how one leaves.
        Err(fault) if fault.exit == Exit::Interrupted => Ok(Exit::Answered),
        ended => ended,
    })
}

async fn watch(options: &WatchOptions) -> Result<Exit, Fault> {
    let mut connection = live::require(Role::Observe).await?;
    let mut output = Output::start()
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}")))?;
    let chunks = output.sender();
    // Before the first look: what changes in between is not missed.
    let watching = connection.client.call::<WatchSessions>(&NoParams {}).await;
    watching.map_err(|error| one_call::fault(&error))?;
    let ended = tokio::select! {
        ended = show(&mut connection, options, &chunks) => ended,
        error = output.broken() => return closed(&error),
    };
    drop(chunks);
    // What was told comes before the reason to end.
    match (output.finish().await, ended) {
        (Ok(()), ended) => ended,
        (Err(error), _) => closed(&error),
    }
}

fn closed(error: &std::io::Error) -> Result<Exit, Fault> {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Ok(Exit::OutputClosed);
    }
    Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}")))
}

async fn show(
    connection: &mut Connection,
    options: &WatchOptions,
    chunks: &mpsc::Sender<Chunk>,
) -> Result<Exit, Fault> {
    let mut view = View::new();
    if !options.json {
        look(&connection.client, &mut view, chunks).await?;
        tell("Watching; Ctrl-C ends it.");
    }
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

/// Asks what is live, and tells what is news of it.
async fn look(client: &Client, view: &mut View, chunks: &mpsc::Sender<Chunk>) -> Result<(), Fault> {
    let mut params =
        ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    loop {
        let list = client.call::<ListSessions>(&params).await.map_err(|error| one_call::fault(&error))?;
        for session in list.sessions {
            let told = view.board.found(session);
            put(chunks, view.stamped(told)).await;
        }
        params.cursor = list.cursor;
        if params.cursor.is_none() {
            return Ok(());
        }
    }
}

async fn put(chunks: &mpsc::Sender<Chunk>, text: String) {
    if !text.is_empty() {
        // It fails only when the writer has ended, which `broken` tells.
        let _ = chunks.send(Chunk::Out(text.into_bytes())).await;
    }
}

/// Events as lines.
struct View {
    board: Board,
    zone: TimeZone,
}

impl View {
    fn new() -> Self {
        Self { board: Board::new(Screen::of_stdout()), zone: TimeZone::system() }
    }

    /// Whether changes were not told, since we were too slow.
    fn lost(&self, line: &EventLine) -> bool {
        matches!(line.event(), Some(Event::Lagged(_)))
    }

    fn lines(&mut self, line: &EventLine) -> String {
        let told = match line.event() {
            Some(Event::SessionOpened(opened)) => self.board.opened(opened.session),
            Some(Event::SessionChanged(changed)) => self.board.changed(changed.session),
            Some(Event::SessionClosed(closed)) => self.board.closed(&closed.session_id),
            _ => None,
        };
        self.stamped(told)
    }

    fn stamped(&self, told: Option<String>) -> String {
        told.map(|told| format!("{}  {told}\n", clock(Timestamp::now(), &self.zone))).unwrap_or_default()
    }
}
