//! A client's place in a session, as one that provides tools.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::event::Event;
use bytes::Bytes;

use super::calls::{ClientCalls, Leaving};
use crate::{event_log::ReaderId, feed::Feed, reply::encode};

/// A connection's place in a session, as one that provides tools. Dropping it takes its tools from the session, and ends the
/// calls that it works on there, as for a client that has disconnected.
pub struct ToolSeat {
    seat: Arc<Seat>,
    leaving: Leaving,
}

/// What the tools of a seat know of it.
pub(crate) struct Seat {
    pub(super) id: u64,
    /// Who provides the tools, for people.
    pub(super) client: String,
    pub(super) session_id: String,
    pub(super) calls: ClientCalls,
    feed: Feed,
    /// The connection, as a listener of the session.
    reader: Mutex<ReaderId>,
}

impl ToolSeat {
    /// A seat without tools, in the session of that feed, for the connection that listens there as `reader`. `client` is what
    /// others are told that it is called.
    #[must_use]
    pub fn new(feed: &Feed, session_id: &str, reader: ReaderId, client: String, calls: &ClientCalls) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let seat = Seat {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            client,
            session_id: session_id.to_owned(),
            calls: calls.clone(),
            feed: feed.clone(),
            reader: Mutex::new(reader),
        };
        Self { seat: Arc::new(seat), leaving: Leaving::Disconnected }
    }

    /// The connection listens under another name from here on.
    pub fn listen_as(&self, reader: ReaderId) {
        *self.seat.reader.lock().unwrap_or_else(PoisonError::into_inner) = reader;
    }

    /// The names of its tools.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (_, posted) = self.seat.feed.board().posted();
        let ours = posted.iter().filter(|posted| posted.tool.seat_id() == self.seat.id);
        ours.map(|posted| posted.tool.name().to_owned()).collect()
    }

    /// Takes tools from the session: those of these names, or all. The names of those that were there. Calls that are under way
    /// can still be answered. [`SessionHandle::tools_left`](crate::SessionHandle::tools_left) tells the listeners.
    pub fn unregister(&self, names: Option<&[String]>) -> Vec<String> {
        self.seat.feed.board().take_down(self.seat.id, names)
    }

    /// Leaves the session, while the client is still there.
    pub fn leave(mut self) {
        self.leaving = Leaving::LeftSession;
    }

    pub(crate) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }
}

impl Drop for ToolSeat {
    fn drop(&mut self) {
        // First the tools, so that no call begins in between.
        self.seat.feed.board().take_down(self.seat.id, None);
        self.seat.calls.leave(self.seat.id, self.leaving);
    }
}

impl Seat {
    /// Whether these are the tools of that seat.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id == other.id
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Sends the client a line of its own, after everything that the session has said so far.
    pub(super) fn address(&self, line: Bytes) {
        let reader = *self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        self.feed.address(reader, line);
    }

    /// The same, for an event.
    pub(super) fn tell(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.address(line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }
}
