//! A server's life: connecting, its tools, its end and the next connection.
//!
//! A server is connected in the background, and again by the next call after its connection has ended. After failures the next attempt waits
//! for a pause that doubles; calls before its end fail at once and say why. Calls are never repeated: nobody knows whether they have run.

mod calls;
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
    time::Duration,
};

use agentd_http::scrub;
use agentd_protocol::{mcp::McpServerState, text_bounds};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    handshake::{Connection, ServerFacts, connect},
    lists::ToolList,
};
use crate::{
    config::ServerConfig, definition::ToolDefinition, elicitation::UserInput, launch::ServerContext,
    oauth::Authorization, peer::PeerHandler, prompt::PromptList, server_log::ServerLogSource,
};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

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
    /// Held while a connection is made.
    connecting: Arc<tokio::sync::Mutex<()>>,
    /// Fires when no session has the server any more.
    closing: CancellationToken,
}

/// A session's hold on a server. The server ends with the last one, whatever still works for it.
pub(crate) struct ServerLease(Arc<McpServer>);

impl ServerLease {
    pub(crate) fn new(config: ServerConfig, context: ServerContext) -> Arc<Self> {
        let (state, connecting, closing) = (Mutex::default(), Arc::default(), CancellationToken::new());
        let (authorization, prompts) = (context.authorization(&config), PromptList::default());
        let server = McpServer { config, context, authorization, state, prompts, connecting, closing };
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

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// How many there were, this one included.
    connections: u64,
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

/// Takes what a server sends by itself.
struct Events {
    /// Wakes the reading of tools.
    tools_changed: Arc<Notify>,
    /// Wakes the reading of prompts.
    prompts_changed: Arc<Notify>,
    /// The answer to `roots/list`.
    roots: Option<Value>,
    server: String,
    log: ServerLogSource,
}

impl PeerHandler for Events {
    fn server(&self) -> &str {
        &self.server
    }

    fn notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.tools_changed.notify_one(),
            "notifications/prompts/list_changed" => self.prompts_changed.notify_one(),
            "notifications/message" => self.log.message(params),
            _ => {}
        }
    }

    fn errors(&self, text: &str) {
        self.log.errors(text);
    }

    fn roots(&self) -> Option<Value> {
        self.roots.clone()
    }
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

    /// The tools that it had when they were last listed.
    pub(crate) fn tools(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.lock().tools)
    }

    /// Whether it had resources when it was last connected.
    pub(crate) fn has_resources(&self) -> bool {
        self.lock().has_resources
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

    /// Connects in the background, unless it is connected or being connected.
    pub(crate) fn connect_soon(self: &Arc<Self>) {
        self.lock().is_asked_for = true;
        let server = Arc::clone(self);
        self.context.tasks.spawn(async move {
            // The state says what came of it.
            let _ = server.connection(None, Attempt::Now).await;
        });
    }

    /// Ends the connection, if there is one, and makes another. The state says what came of it.
    pub(crate) async fn reconnect(self: &Arc<Self>) {
        self.close().await;
        let _ = self.connection(None, Attempt::Now).await;
    }

    /// Gives up to connect it, now and later.
    pub(crate) fn give_up_connecting(&self) {
        self.closing.cancel();
    }

    /// Ends the connection: returns when nothing of the server is left.
    pub(crate) async fn close(&self) {
        let connection = self.lock().connection.take();
        if let Some(connection) = connection {
            connection.close().await;
            self.tell(false);
        }
    }

    /// The connection; one is made where there is none. `Err(None)`: given up by `cancel`.
    pub(super) async fn connection(
        self: &Arc<Self>,
        cancel: Option<&CancellationToken>,
        attempt: Attempt,
    ) -> Result<Arc<Connection>, Option<String>> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        // In a task of its own: others may wait for the same connection when this caller gives up.
        let server = Arc::clone(self);
        let made = self.context.tasks.spawn(async move {
            let _one = Arc::clone(&server.connecting).lock_owned().await;
            if let Some(connection) = server.live() {
                return Ok(connection);
            }
            if attempt == Attempt::AfterPause {
                server.check_pause()?;
            }
            server.make_connection().await
        });
        let cancelled = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            made = made => made.unwrap_or_else(|error| Err(error.to_string())).map_err(Some),
            () = cancelled => Err(None),
        }
    }

    /// Fails while the pause after a failure lasts.
    fn check_pause(&self) -> Result<(), String> {
        let state = self.lock();
        // The user may have signed in meanwhile.
        let Some(last) = state.last_failure.filter(|_| self.needed_sign_in().is_none()) else {
            return Ok(());
        };
        let left = pause(state.failures).saturating_sub(last.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let error = state.error.clone().unwrap_or_default();
        Err(format!("{error} (the next attempt is made in {} s)", left.as_secs() + 1))
    }

    async fn make_connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        self.lock().is_connecting = true;
        self.tell(false);
        let (tools_changed, prompts_changed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = Arc::new(Events {
            tools_changed: Arc::clone(&tools_changed),
            prompts_changed: Arc::clone(&prompts_changed),
            roots: self.config.roots.then(|| self.context.roots()),
            server: self.config.name.clone(),
            log: self.context.log.of_server(&self.config.name),
        });
        let connecting = connect(&self.config, &self.context, self.authorization.clone(), handler);
        let connected = self.closing.run_until_cancelled(connecting).await;
        let connected = connected.unwrap_or_else(|| Err("its session is closed".to_owned()));
        let connected = connected.map_err(|error| clean(&self.needed_sign_in().unwrap_or(error)));
        let outcome = {
            let mut state = self.lock();
            state.is_connecting = false;
            match connected {
                Ok((connection, list)) => {
                    let connection = Arc::new(connection);
                    state.connections += 1;
                    state.has_resources = connection.facts.has_resources;
                    state.connection = Some(Arc::clone(&connection));
                    (state.failures, state.last_failure, state.error) = (0, None, None);
                    state.tools_changed = tools_changed;
                    state.stale = connection.stale(&list);
                    state.tools = list.tools.into();
                    Ok(connection)
                }
                Err(error) => {
                    // The end of the session is no fault of the server.
                    if !self.closing.is_cancelled() {
                        tracing::warn!(
                            server = self.config.name,
                            error,
                            "an MCP server could not be connected"
                        );
                    }
                    state.failures += 1;
                    state.last_failure = Some(Instant::now());
                    state.error = Some(error.clone());
                    Err(error)
                }
            }
        };
        if let Ok(connection) = &outcome {
            let (number, tools_changed) = {
                let state = self.lock();
                (state.connections, Arc::clone(&state.tools_changed))
            };
            let weak = (Arc::downgrade(self), Arc::downgrade(connection));
            if connection.facts.has_prompts {
                let (peer, over) = (connection.peer.clone(), connection.over.clone());
                let prompts = Self::follow_prompts(Arc::downgrade(self), peer, over, prompts_changed.clone());
                self.context.tasks.spawn(prompts);
            }
            self.context.tasks.spawn(Self::follow(weak, number, (tools_changed, prompts_changed)));
        }
        self.tell(outcome.is_ok());
        outcome
    }

    fn live(&self) -> Option<Arc<Connection>> {
        let state = self.lock();
        state.connection.as_ref().filter(|connection| connection.peer.closed().is_none()).map(Arc::clone)
    }

    /// Takes note of another list of tools.
    fn set_tools(&self, list: ToolList, stale: Option<Instant>) {
        let is_new = {
            let mut state = self.lock();
            let is_new = *state.tools != *list.tools;
            state.tools = list.tools.into();
            state.stale = stale;
            is_new
        };
        if is_new {
            self.tell(true);
        }
    }

    /// Has the tools read again, in the background, where their list no longer counts.
    pub(super) fn renew_tools(&self) {
        let mut state = self.lock();
        if state.stale.is_some_and(|stale| stale <= Instant::now()) {
            state.stale = None;
            state.tools_changed.notify_one();
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

/// When a connection may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// At once.
    Now,
    /// Not in the pause after a failure.
    AfterPause,
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

/// A text of a server without secrets, and of bounded length.
pub(super) fn clean(text: &str) -> String {
    text_bounds::without_middle(scrub(text).into_owned(), MAX_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let seconds: Vec<u64> = (1..9).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX).as_secs(), 60);
    }
}
