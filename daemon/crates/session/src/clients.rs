//! The clients of a session, kept while the session itself is not in memory.

use agentd_protocol::tool_list::ToolSource;
use tokio::sync::mpsc;

use crate::{
    client_tools::{ClientCalls, EvalExecutors, HostUrls, RequestRoute, ToolProvider},
    event_log::{Feed, FeedLimits, SubscriberId},
    replacement::{ClientOrder, MoverGuard, Movers},
    subagent_events::{SubagentListener, SubagentListeners},
    tool_registry::ToolRegistry,
    ui::{Presence, PresenceGuard, UiAbilities},
};

/// The clients of a session: their subscriptions to its events, the tools that they provide, and whether any of them answers
/// questions. It outlives the session's stay in memory. Cheap to clone.
#[derive(Clone)]
pub struct SessionClients {
    feed: Feed,
    tools: ToolRegistry,
    host_urls: HostUrls,
    eval_executors: EvalExecutors,
    requests: RequestRoute,
    presence: Presence,
    movers: Movers,
    subagent_listeners: SubagentListeners,
}

impl SessionClients {
    /// No clients yet; events follow on event `last_seq`.
    pub(crate) fn starting_after(last_seq: u64, limits: FeedLimits) -> Self {
        let feed = Feed::starting_after(last_seq, limits);
        Self {
            feed,
            tools: ToolRegistry::default(),
            host_urls: HostUrls::default(),
            eval_executors: EvalExecutors::default(),
            requests: RequestRoute::default(),
            presence: Presence::default(),
            movers: Movers::default(),
            subagent_listeners: SubagentListeners::default(),
        }
    }

    /// The session's events and answers.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Counts a client that answers questions to the user, until the guard is dropped.
    #[must_use]
    pub fn enter(&self, abilities: UiAbilities) -> PresenceGuard {
        self.presence.enter(abilities)
    }

    /// Lets extensions lead the connection that listens as `subscriber` to another session, until the guard is dropped.
    #[must_use]
    pub fn may_be_moved(
        &self,
        subscriber: SubscriberId,
        moves: mpsc::UnboundedSender<ClientOrder>,
    ) -> MoverGuard {
        self.movers.add(subscriber, moves)
    }

    /// Sends the connection that listens as `subscriber` the events of the session's subagents, until the guard is dropped.
    #[must_use]
    pub fn follow_subagents(&self, subscriber: SubscriberId) -> SubagentListener {
        self.subagent_listeners.add(subscriber)
    }

    pub(crate) fn subagent_listeners(&self) -> &SubagentListeners {
        &self.subagent_listeners
    }

    /// The connections that extensions can lead elsewhere.
    pub(crate) fn movers(&self) -> &Movers {
        &self.movers
    }

    /// Makes the connection that listens as `subscriber` a provider of tools, without any so far. `client` is the name that
    /// others see.
    #[must_use]
    pub fn provide_tools(
        &self,
        session_id: &str,
        subscriber: SubscriberId,
        client: String,
        calls: &ClientCalls,
    ) -> ToolProvider {
        let registries = (&self.tools, &self.host_urls, &self.eval_executors);
        ToolProvider::new(registries, &self.requests, &self.feed, session_id, subscriber, client, calls)
    }

    /// All tools of the session.
    pub(crate) fn tools(&self) -> &ToolRegistry {
        &self.tools
    }

    /// The URLs that clients serve.
    pub(crate) fn host_urls(&self) -> &HostUrls {
        &self.host_urls
    }

    /// The clients that run cells.
    pub(crate) fn eval_executors(&self) -> &EvalExecutors {
        &self.eval_executors
    }

    /// The way of client tools' requests to the session.
    pub(crate) fn tool_requests(&self) -> &RequestRoute {
        &self.requests
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Lets go of what only a session in memory uses: its built-in tools, and its channel. Loading it brings both again.
    pub(crate) fn release_session(&self) {
        self.tools.replace(ToolSource::Builtin, []);
        self.requests.lead_nowhere();
    }
}
