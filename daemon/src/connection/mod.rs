//! One client: lines in, lines out, and the sessions that it works with.
//!
//! The reading half (`read_loop`) takes commands one after the other and hands them on; the writing half (`writer`) copies the
//! lines that the followed sessions' feeds hold for this client. Neither ever waits for a run.

mod activity_sampler;
mod attachments;
mod client;
mod client_tools;
mod command_peer;
mod cumulative;
mod daemon_commands;
mod dispatcher;
mod eval_executors;
mod event_filter;
mod feeds;
mod follow;
mod host_tools;
mod host_uris;
mod long_lines;
mod moves;
mod open_requests;
mod open_session;
mod options;
mod output_lines;
mod provided_tools;
mod read_loop;
mod session_commands;
mod switch_session;
mod writer;

pub use self::options::{Connection, ConnectionFlags, Origin, ReservedSlot};

use std::sync::Arc;

use agentd_protocol::lines::Line;
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use self::{command_peer::CommandPeer, dispatcher::Dispatcher};
use crate::{hub::ConnectionCount, limits::WAITING_ANSWERS, transport::Output};

/// Serves a client until its input ends, or `ending` fires, and everything owed to it is written. With a host whose
/// `hears_the_end` is false, no line is begun once `ending` has fired and this has returned. `count` counts the connection until
/// then.
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
    // Aborts the writer task when this future is dropped.
    let mut writing = JoinSet::new();
    writing.spawn(writer::write(out, output, Arc::clone(count.stats())));
    let reading = async {
        let command_peer = match &mut connection.origin {
            Origin::Socket { peer, .. } => match peer.take() {
                Some(peer) => CommandPeer::of(peer, count.number()).await,
                None => None,
            },
            Origin::Host { .. } => None,
        };
        let mut dispatcher = Dispatcher::new(connection, count.number(), command_peer, outbox, gone);
        dispatcher.begin().await;
        dispatcher.run(lines, ending).await;
    };
    tokio::pin!(reading);
    tokio::select! {
        // The writer ends first only when the client is gone, so reading on would serve nobody.
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
