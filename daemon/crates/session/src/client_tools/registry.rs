//! Which tools clients provide for a session at the moment.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::tool_list::ToolState;
use tokio::sync::Notify;

use super::{
    calls::{ClientCalls, Leaving},
    tool::{ClientToolSpec, ProvidingClient},
};
use crate::event_log::{Feed, SubscriberId};

/// The tools that clients provide for one session. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ClientToolRegistry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Keeps one call for the session, which need not be in memory.
    changed: Notify,
}

#[derive(Default)]
struct State {
    registered: Vec<RegisteredTool>,
    /// Counts the changes.
    version: u64,
    /// The version and the tools that were published last.
    told: Option<(u64, Vec<ToolState>)>,
}

/// A tool on the registry.
#[derive(Clone)]
pub(crate) struct RegisteredTool {
    pub(crate) tool: Arc<ClientToolSpec>,
    /// Whether the model can call it.
    pub(crate) active: bool,
}

impl ClientToolRegistry {
    /// The number of changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    /// The tools, in the order in which they came, and how many changes there were.
    pub(crate) fn registered(&self) -> (u64, Vec<RegisteredTool>) {
        let state = self.lock();
        (state.version, state.registered.clone())
    }

    /// Adds active tools. One that the same client has there already is replaced in its place.
    pub(crate) fn register(&self, tools: impl IntoIterator<Item = ClientToolSpec>) {
        let mut state = self.lock();
        for tool in tools {
            let new = RegisteredTool { tool: Arc::new(tool), active: true };
            match state.registered.iter_mut().find(|old| old.tool.name() == new.tool.name()) {
                Some(old) => *old = new,
                None => state.registered.push(new),
            }
        }
        state.version += 1;
    }

    /// Activates exactly the tools of these names, and deactivates the others.
    pub(crate) fn activate(&self, names: &[String]) {
        let mut state = self.lock();
        let mut changes = false;
        for registered in &mut state.registered {
            let active = names.iter().any(|name| name == registered.tool.name());
            changes |= std::mem::replace(&mut registered.active, active) != active;
        }
        state.version += u64::from(changes);
    }

    /// Takes tools of a provider away: those of these names, or all. The names of those that are gone. The session hears of it
    /// where it waits for that, or when it is in memory again.
    pub(super) fn unregister(&self, provider: u64, names: Option<&[String]>) -> Vec<String> {
        let mut gone = Vec::new();
        let mut state = self.lock();
        state.registered.retain(|registered| {
            let name = registered.tool.name();
            let goes = registered.tool.provider_id() == provider
                && names.is_none_or(|names| names.iter().any(|wanted| wanted == name));
            if goes {
                gone.push(name.to_owned());
            }
            !goes
        });
        if !gone.is_empty() {
            state.version += 1;
            self.0.changed.notify_one();
        }
        gone
    }

    /// Takes note of what the subscribers are about to be told; false when they know. A session that was just opened has told
    /// nobody anything, and has nothing to tell.
    pub(crate) fn tell(&self, tools: &[ToolState]) -> bool {
        let mut state = self.lock();
        let now = (state.version, tools.to_vec());
        let before = state.told.replace(now);
        before.is_some() && before != state.told
    }

    /// Waits for a change that a client made by leaving. One at a time may wait. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in a session, as one that provides tools. Dropping it takes its tools from the session, and ends the
/// calls that it works on there, as for a client that has disconnected.
pub struct ToolProvider {
    registry: ClientToolRegistry,
    provider: Arc<ProvidingClient>,
    leaving: Leaving,
}

impl ToolProvider {
    pub(crate) fn new(
        registry: &ClientToolRegistry,
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
        Self { registry: registry.clone(), provider: Arc::new(provider), leaving: Leaving::Disconnected }
    }

    /// The connection listens under another name from here on.
    pub fn listen_as(&self, subscriber: SubscriberId) {
        *self.provider.subscriber.lock().unwrap_or_else(PoisonError::into_inner) = subscriber;
    }

    /// The names of its tools.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (_, registered) = self.registry.registered();
        let ours = registered.iter().filter(|registered| registered.tool.provider_id() == self.provider.id);
        ours.map(|registered| registered.tool.name().to_owned()).collect()
    }

    /// Takes tools from the session: those of these names, or all. The names of those that were there. Calls that are under way
    /// can still be answered. [`SessionHandle::tools_left`](crate::SessionHandle::tools_left) tells the subscribers.
    pub fn unregister(&self, names: Option<&[String]>) -> Vec<String> {
        self.registry.unregister(self.provider.id, names)
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
        self.provider.calls.leave(self.provider.id, self.leaving);
    }
}
