//! What extensions show before the first client is there: handlers of `session_start` may be quicker than the client that opens the session.

use agentd_protocol::event::ExtensionError;
use bytes::Bytes;

/// The most that is kept for the first client.
pub(super) const MAX_EARLY: usize = 100;

/// Something that extensions tell the clients.
pub(super) enum EarlyNotice {
    /// A line for clients that show it.
    Line(Bytes),
    /// A failure.
    Failure(ExtensionError),
}
