//! A client's place in a session, as one that provides tools.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::event::Event;
use bytes::Bytes;

use super::calls::{ClientCalls, Leaving};
use crate::{event_log::SubscriberId, feed::Feed, reply::encode};

/// A connection's place in a session, as one that provides tools. Dropping it takes its tools from the session, and ends the
/// calls that it works on there, as for a client that has disconnected.
pub struct ToolProvider {
    provider: Arc<ProvidingClient>,
    leaving: Leaving,
}

/// What the tools of a provider know of it.
pub(crate) struct ProvidingClient {
    pub(super) id: u64,
    /// Who provides the tools, for people.
    pub(super) client: String,
    pub(super) session_id: String,
    pub(super) calls: ClientCalls,
    feed: Feed,
    /// The connection, as a subscriber of the session.
    subscriber: Mutex<SubscriberId>,
}

impl ToolProvider {
    /// A provider without tools, in the session of that feed, for the connection that listens there as `subscriber`. `client` is what
    /// others are told that it is called.
    #[must_use]
    pub fn new(
        feed: &Feed,
        session_id: &str,
        subscriber: SubscriberId,
        client: String,
        calls: &ClientCalls,
    ) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let provider = ProvidingClient {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            client,
            session_id: session_id.to_owned(),
            calls: calls.clone(),
            feed: feed.clone(),
            subscriber: Mutex::new(subscriber),
        };
        Self { provider: Arc::new(provider), leaving: Leaving::Disconnected }
    }

    /// The connection listens under another name from here on.
    pub fn listen_as(&self, subscriber: SubscriberId) {
        *self.provider.subscriber.lock().unwrap_or_else(PoisonError::into_inner) = subscriber;
    }

    /// The names of its tools.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (_, registered) = self.provider.feed.client_tools().registered();
        let ours = registered.iter().filter(|registered| registered.tool.provider_id() == self.provider.id);
        ours.map(|registered| registered.tool.name().to_owned()).collect()
    }

    /// Takes tools from the session: those of these names, or all. The names of those that were there. Calls that are under way
    /// can still be answered. [`SessionHandle::tools_left`](crate::SessionHandle::tools_left) tells the subscribers.
    pub fn unregister(&self, names: Option<&[String]>) -> Vec<String> {
        self.provider.feed.client_tools().unregister(self.provider.id, names)
    }

    /// Leaves the session, while the client is still there.
    pub fn leave(mut self) {
        self.leaving = Leaving::LeftSession;
    }

    pub(crate) fn provider(&self) -> &Arc<ProvidingClient> {
        &self.provider
    }
}

impl Drop for ToolProvider {
    fn drop(&mut self) {
        // First the tools, so that no call begins in between.
        self.provider.feed.client_tools().unregister(self.provider.id, None);
        self.provider.calls.leave(self.provider.id, self.leaving);
    }
}

impl ProvidingClient {
    /// Whether these are the tools of that provider.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id == other.id
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Sends the client a line of its own, after everything that the session has said so far.
    pub(super) fn address(&self, line: Bytes) {
        let subscriber = *self.subscriber.lock().unwrap_or_else(PoisonError::into_inner);
        self.feed.address(subscriber, line);
    }

    /// The same, for an event.
    pub(super) fn tell(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.address(line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }
}
