//! What both transports give a connection.

use tokio_util::sync::CancellationToken;

use crate::peer::Peer;

/// A connection's transport.
pub(crate) struct Transport {
    pub(crate) peer: Peer,
    /// The server's process, if agentd has started it.
    pub(crate) pid: Option<i32>,
    /// Fires when the connection is to end, or has ended.
    pub(crate) over: CancellationToken,
    /// Fires when nothing of the connection is left.
    pub(crate) gone: CancellationToken,
}
