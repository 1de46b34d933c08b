//! The one interface to every model.

use std::pin::Pin;

use futures::Stream;
use tokio_util::sync::CancellationToken;

use crate::{Delta, Request};

/// The deltas of one answer; see [`Delta`] for their legal order.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Delta> + Send>>;

/// Speaks one wire API.
///
/// A provider keeps no state of a conversation: the request holds all of it.
pub trait Provider: Send + Sync {
    /// Sends `request` and streams the answer.
    ///
    /// Never fails by itself: what goes wrong, before or inside the stream, is a [`Delta::Failed`]. Nothing is sent
    /// before the stream is first polled. When `cancel` fires, the connection is closed at once and the stream ends with
    /// an aborted [`Delta::Failed`].
    ///
    /// Cancel safety: dropping the stream closes the connection.
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream;
}
