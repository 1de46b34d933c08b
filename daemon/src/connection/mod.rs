//! One client: lines in, lines out, and the sessions that it works with.
//!
//! The reading half takes commands one after the other and hands them on; the writing half copies what the sessions' feeds
//! hold for this client. Neither ever waits for a run.

mod attachment;
mod caller;
mod client;
mod cumulative;
mod following;
mod managing;
mod opening;
mod processes;
mod providing;
mod questions;
mod reader;
mod replacing;
mod reserved;
mod view;
mod watching;
mod wishes;
mod writer;

use std::{sync::Arc, time::Duration};

pub use self::reserved::Reserved;

use agentd_process::Peer;
use agentd_protocol::lines::Line;
use agentd_session::SessionOptions;
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::OnEof,
    hub::{ConnectionCount, DaemonContext, SessionSlot, ShutdownSwitch},
    limits::{ClientLimits, WAITING_ANSWERS},
    transport::Output,
};

/// What a connection needs to begin.
pub struct Connection {
    /// What it shares with the daemon's other connections.
    pub daemon: Arc<DaemonContext>,
    /// Where it comes from.
    pub origin: Origin,
    /// What sessions are opened with where a command does not say: environment, folder, compatibility.
    pub options: SessionOptions,
    /// Where the wish to end the daemon goes.
    pub shutdown: ShutdownSwitch,
    /// How long work has to finish then, when nobody says otherwise.
    pub shutdown_deadline: Duration,
    /// The longest line that is taken, in bytes.
    pub max_line_bytes: usize,
    /// What it may have.
    pub limits: ClientLimits,
    /// Where it came when there was no place for it.
    pub reserved: Option<Reserved>,
}

/// Where a connection comes from.
pub enum Origin {
    /// The host that started this process for itself: the session is there from the start, and nothing outlives the host.
    Host {
        /// The session.
        session: Arc<SessionSlot>,
        /// What the end of the input means for unfinished work.
        on_eof: OnEof,
        /// Whether updates carry the answer so far (`--cumulative-updates`).
        cumulative: bool,
        /// Whether the host can show dialogs, and answers them.
        answers: bool,
        /// Whether the host is told what ends with the connection. One that could ask on is not: it would find nobody.
        hears_the_end: bool,
    },
    /// A client of the socket, which comes and goes.
    Socket {
        /// The socket.
        path: std::path::PathBuf,
        /// Who is at the other end; taken once that has been looked at.
        peer: Option<Peer>,
    },
}

/// Serves a client until its input ends, or `ending` fires, and everything that it is owed is written. To a host that does
/// not hear the end, no line is begun once `ending` has fired and this has returned. `count` counts it until then.
///
/// # Errors
/// When its output cannot be written any more.
pub async fn serve(
    mut connection: Connection,
    count: ConnectionCount,
    lines: mpsc::Receiver<Line>,
    output: Output,
    ending: CancellationToken,
) -> std::io::Result<()> {
    let falls_silent = matches!(connection.origin, Origin::Host { hears_the_end: false, .. });
    let over = ending.clone();
    let gone = output.gone();
    let (outbox, out) = mpsc::channel(WAITING_ANSWERS);
    // Dropped with this future, it ends the task.
    let mut writing = JoinSet::new();
    writing.spawn(writer::write(out, output));
    let reading = async {
        let caller = match &mut connection.origin {
            Origin::Socket { peer, .. } => match peer.take() {
                Some(peer) => caller::Caller::of(peer, count.number()).await,
                None => None,
            },
            Origin::Host { .. } => None,
        };
        let mut reader = reader::Reader::new(connection, count.number(), caller, outbox, gone);
        reader.begin().await;
        reader.run(lines, ending).await;
    };
    tokio::pin!(reading);
    tokio::select! {
        // The writer ends by itself only when the client is gone: then nobody is left to read for.
        written = writing.join_next() => return joined(written),
        () = &mut reading => {}
    }
    if falls_silent && over.is_cancelled() {
        writing.shutdown().await;
    }
    joined(writing.join_next().await)
}

fn joined(result: Option<Result<std::io::Result<()>, JoinError>>) -> std::io::Result<()> {
    result.unwrap_or(Ok(Ok(()))).unwrap_or_else(|error| Err(std::io::Error::other(error)))
}
