//! A server's life: connecting, its tools, its end and the next connection.
//!
//! A server is connected in the background, and again by the next call after its connection has ended. After failures the next attempt waits
//! for a pause that doubles; calls before its end fail at once and say why. Calls are never repeated: nobody knows whether they have run.

mod calls;
mod connecting;
mod definitions;
mod follow;
mod handshake;
mod lists;
mod prompts;
mod rounds;
mod sign_in;
mod subscription;

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use agentd_http::scrub;
use agentd_protocol::{mcp::McpServerState, text_bounds};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use self::handshake::{Connection, ServerFacts};
use crate::{
    config::ServerConfig,
    definition::ToolDefinition,
    definition_cache::{DefinitionCache, Kept, KnownDefinitions},
    elicitation::UserInput,
    launch::ServerContext,
    oauth::Authorization,
    prompt::PromptList,
};

/// The longest error of a server that is passed on, in bytes.
const MAX_ERROR: usize = 4000;

/// Hears of changes of a server. Must be quick and never wait.
pub(crate) trait ServerWatcher: Send + Sync {
    /// The state has changed, and with `tools` the tools, too.
    fn changed(&self, tools: bool);

    /// The user of the session that watches.
    fn user(&self) -> Option<Arc<dyn UserInput>>;
}

/// A server with its connection.
pub(crate) struct McpServer {
    config: ServerConfig,
    context: ServerContext,
    /// Of a server that is reached by HTTP, where no header of its entry does it.
    authorization: Option<Arc<Authorization>>,
    state: Mutex<State>,
    prompts: PromptList,
    /// Where its definitions are kept for later sessions.
    cache: Option<DefinitionCache>,
    /// Held while they are written.
    saving: tokio::sync::Mutex<()>,
    /// Held while a connection is made.
    connecting: Arc<tokio::sync::Mutex<()>>,
    /// Fires when no session has the server any more.
    closing: CancellationToken,
}

/// A session's hold on a server. The server ends with the last one, whatever still works for it.
pub(crate) struct ServerLease(Arc<McpServer>);

impl ServerLease {
    /// A server that is not connected, with the definitions that were kept of it. Reads a file; blocks.
    pub(crate) fn new(config: ServerConfig, context: ServerContext) -> Arc<Self> {
        let cache = DefinitionCache::of(&config, &context);
        let is_used = config.enabled && !config.is_hidden();
        let kept = cache.as_ref().filter(|_| is_used).and_then(DefinitionCache::load);
        let (mut state, prompts) = (State::default(), PromptList::default());
        if let Some(Kept { definitions, is_fresh }) = kept {
            let KnownDefinitions { tools, prompts: listed, has_resources, instructions } = definitions;
            prompts.set(listed);
            (state.knowledge, state.tools) = (Knowledge::Kept { is_fresh }, tools.into());
            (state.has_resources, state.instructions) = (has_resources, instructions);
        }
        let server = McpServer {
            authorization: context.authorization(&config),
            config,
            context,
            state: Mutex::new(state),
            prompts,
            cache,
            saving: tokio::sync::Mutex::default(),
            connecting: Arc::default(),
            closing: CancellationToken::new(),
        };
        Arc::new(Self(Arc::new(server)))
    }
}

impl Deref for ServerLease {
    type Target = Arc<McpServer>;

    fn deref(&self) -> &Arc<McpServer> {
        &self.0
    }
}

impl Drop for ServerLease {
    fn drop(&mut self) {
        self.closing.cancel();
        drop(self.lock().connection.take());
    }
}

/// Where what is known of a server's definitions comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Knowledge {
    /// Nothing is known.
    #[default]
    Nothing,
    /// From a session before.
    Kept {
        /// Whether it is young enough not to be asked for at once.
        is_fresh: bool,
    },
    /// From a connection of this server.
    Listed,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// How many there were, this one included.
    connections: u64,
    /// Where `tools`, `has_resources` and `instructions` come from.
    knowledge: Knowledge,
    /// Its advice for the model, as it said last.
    instructions: Option<String>,
    /// Whether the last one said that there are resources.
    has_resources: bool,
    is_connecting: bool,
    /// Whether a first attempt was asked for; it may not have begun.
    is_asked_for: bool,
    tools: Arc<[ToolDefinition]>,
    /// When the list of tools is to be read again, where the server says how long it counts and nothing when it changes.
    stale: Option<Instant>,
    /// Wakes the reading of tools.
    tools_changed: Arc<Notify>,
    /// Why the last attempt failed, or the last connection ended.
    error: Option<String>,
    /// Failed attempts since the last connection.
    failures: u32,
    last_failure: Option<Instant>,
    watchers: Vec<Weak<dyn ServerWatcher>>,
}

/// What is known of a server.
pub(crate) struct ServerView {
    pub(crate) state: McpServerState,
    pub(crate) error: Option<String>,
    pub(crate) facts: Option<ServerFacts>,
    pub(crate) pid: Option<i32>,
}

impl McpServer {
    /// Its entry.
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Its surroundings.
    pub(crate) fn context(&self) -> &ServerContext {
        &self.context
    }

    /// Tells `watcher` of changes for as long as it lives.
    pub(crate) fn watch(&self, watcher: Weak<dyn ServerWatcher>) {
        let mut state = self.lock();
        state.watchers.retain(|other| other.strong_count() > 0);
        state.watchers.push(watcher);
    }

    /// What is known of it.
    pub(crate) fn view(&self) -> ServerView {
        let state = self.lock();
        let live = state.connection.as_ref().filter(|connection| connection.peer.closed().is_none());
        let sign_in = self.needed_sign_in().filter(|_| !state.is_connecting);
        let shown = match live {
            _ if sign_in.is_some() => McpServerState::NeedsAuth,
            Some(_) => McpServerState::Connected,
            None if state.is_connecting => McpServerState::Connecting,
            None if state.failures > 0 => McpServerState::Failed,
            None if state.connections > 0 => McpServerState::Disconnected,
            None if state.is_asked_for => McpServerState::Connecting,
            None => McpServerState::Idle,
        };
        let error = state.error.clone().filter(|_| live.is_none() && !state.is_connecting);
        ServerView {
            error: sign_in.or(error),
            facts: live.map(|connection| connection.facts.clone()),
            pid: live.and_then(|connection| connection.pid),
            state: shown,
        }
    }

    /// The user of the one session that has the server; `None` where there are several, or none.
    pub(super) fn only_user(&self) -> Option<Arc<dyn UserInput>> {
        let watchers: Vec<_> = self.lock().watchers.iter().filter_map(Weak::upgrade).collect();
        if let [watcher] = &watchers[..] { watcher.user() } else { None }
    }

    fn tell(&self, tools: bool) {
        let watchers: Vec<_> = self.lock().watchers.iter().filter_map(Weak::upgrade).collect();
        watchers.iter().for_each(|watcher| watcher.changed(tools));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text of a server without secrets, and of bounded length.
pub(super) fn clean(text: &str) -> String {
    text_bounds::without_middle(scrub(text).into_owned(), MAX_ERROR)
}
