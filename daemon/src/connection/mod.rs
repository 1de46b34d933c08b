//! One client: lines in, lines out, and the session that it works with.
//!
//! The reading half takes commands one after the other and hands them to the session; the writing half copies what the
//! session's feed holds for this client. Neither ever waits for a run.

mod reader;
mod writer;

use std::sync::Arc;

use agentd_protocol::lines::Line;
use agentd_session::{SessionHandle, SessionOptions};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{cli::OnEof, hub::Registry, transport::stdio::Output};

/// How many answers of the connection itself wait before reading pauses.
const OUTBOX: usize = 16;

/// What a connection needs to begin.
pub struct Connection {
    /// The live sessions.
    pub registry: Arc<Registry>,
    /// The session that commands go to.
    pub session: SessionHandle,
    /// What sessions that replace it are opened with.
    pub options: SessionOptions,
    /// What the end of the input means.
    pub on_eof: OnEof,
}

/// Serves a client until its input ends, or `ending` fires, and everything that it is owed is written.
///
/// # Errors
/// When its output cannot be written any more.
pub async fn serve(
    connection: Connection,
    lines: mpsc::Receiver<Line>,
    output: Output,
    ending: CancellationToken,
) -> std::io::Result<()> {
    let (outbox, out) = mpsc::channel(OUTBOX);
    let feed = connection.session.feed().attach();
    let first = feed.id();
    let mut writing = tokio::spawn(writer::write(feed, out, output));
    let reading = reader::Reader::new(connection, first, outbox).run(lines, ending);
    tokio::pin!(reading);
    tokio::select! {
        // The writer ends by itself only when the client is gone: then nobody is left to read for.
        written = &mut writing => return joined(written),
        () = &mut reading => {}
    }
    joined(writing.await)
}

fn joined(result: Result<std::io::Result<()>, tokio::task::JoinError>) -> std::io::Result<()> {
    result.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}
