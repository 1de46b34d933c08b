//! A connection's place in a session, as one that provides tools.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::{error::Failure, host_uris::HostUriScheme};

use super::{
    calls::ClientCalls,
    eval_executors::EvalExecutors,
    host_urls::HostUrls,
    request_ends::Leaving,
    tool::{ProvidingClient, RequestRoute},
};
use crate::{
    event_log::{Feed, SubscriberId},
    tool_registry::{ToolOwner, ToolRegistry},
};

/// A connection's place in a session, as one that provides tools. Dropping it takes its tools from the session, and ends the
/// calls that it works on there, as for a client that has disconnected.
pub struct ToolProvider {
    registry: ToolRegistry,
    urls: HostUrls,
    executors: EvalExecutors,
    provider: Arc<ProvidingClient>,
    leaving: Leaving,
}

impl ToolProvider {
    pub(crate) fn new(
        (registry, urls, executors): (&ToolRegistry, &HostUrls, &EvalExecutors),
        requests: &RequestRoute,
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
            requests: requests.clone(),
            subscriber: Mutex::new(subscriber),
        };
        Self {
            registry: registry.clone(),
            urls: urls.clone(),
            executors: executors.clone(),
            provider: Arc::new(provider),
            leaving: Leaving::Disconnected,
        }
    }

    /// The connection listens under another name from here on.
    pub fn listen_as(&self, subscriber: SubscriberId) {
        *self.provider.subscriber.lock().unwrap_or_else(PoisonError::into_inner) = subscriber;
    }

    /// The names of its tools.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (_, registered) = self.registry.registered();
        let is_ours = |owner: &ToolOwner| matches!(owner, ToolOwner::Client { provider, .. } if *provider == self.provider.id);
        let ours = registered.iter().filter(|registered| is_ours(&registered.owner));
        ours.map(|registered| registered.name().to_owned()).collect()
    }

    /// Takes tools from the session: those of these names, or all. The names of those that were there. Calls that are under way
    /// can still be answered. [`SessionHandle::tools_left`](crate::SessionHandle::tools_left) tells the subscribers.
    pub fn unregister(&self, names: Option<&[String]>) -> Vec<String> {
        self.registry.unregister(self.provider.id, names)
    }

    /// Serves URLs of exactly these schemes in the session. The model is told with its next prompt.
    ///
    /// # Errors
    /// Another client serves one of them; nothing has changed then.
    pub fn serve_urls(&self, schemes: Vec<HostUriScheme>) -> Result<(), Failure> {
        self.urls.replace(&self.provider, schemes)
    }

    /// Runs cells of exactly these languages in the session, from the next one on.
    ///
    /// # Errors
    /// Another client runs cells of one of them; nothing has changed then.
    pub fn execute_cells(&self, languages: Vec<String>) -> Result<(), Failure> {
        self.executors.replace(&self.provider, languages)
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
        self.registry.unregister(self.provider.id, None);
        self.urls.remove(self.provider.id);
        self.executors.remove(self.provider.id);
        self.provider.calls.leave(self.provider.id, self.leaving);
    }
}
