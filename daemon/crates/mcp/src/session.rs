//! The servers of one session.

mod deferred;
mod entry;
mod prompts;
mod resources;
mod sign_ins;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentd_agent::Tool;
use agentd_process::OutputStorage;
use agentd_protocol::mcp::{McpExposure, McpServerInfo};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use self::entry::{SessionServer, info, prompt_section};
use crate::{
    config::McpConfig,
    definition::ToolDefinition,
    elicitation::UserInput,
    launch::ServerContext,
    names::NameTable,
    oauth::ServerSignIn,
    resource_tools::{ResourceServers, resource_tools},
    search_tool::SearchTool,
    server::{McpServer, ServerLease, ServerWatcher},
    shared::SharedServers,
    tool::McpTool,
};

/// How long the first prompt waits for servers with tools that are declared to the model, and a search for those that it connects.
const READY_WAIT: Duration = Duration::from_secs(10);

/// A tool of a server, for the session's registry.
pub struct ServerTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The server; `None` for the search among the tools of all servers.
    pub server: Option<String>,
    /// The time for a call.
    pub timeout: Option<Duration>,
    /// Whether it is declared to the model unasked.
    pub is_direct: bool,
    /// Whether the model has loaded it.
    pub is_loaded: bool,
}

/// Takes the tools of all servers, whenever they have changed. Must be quick and never wait.
pub type ToolSink = Box<dyn Fn(Vec<ServerTool>) + Send + Sync>;

/// The servers of one session. Dropping it ends their connections, except for servers that other sessions share.
pub struct McpSession(Arc<Inner>);

struct Inner {
    config: McpConfig,
    /// Whether servers are connected only when something of them is asked for.
    on_demand: bool,
    storage: OutputStorage,
    servers: Mutex<BTreeMap<String, SessionServer>>,
    names: Mutex<NameTable>,
    /// The names of prompts, which are apart from those of tools.
    prompt_names: Mutex<NameTable>,
    /// The names of deferred tools that the model has loaded.
    loaded: Mutex<BTreeSet<String>>,
    /// Sign-ins that wait for the user, by their ids.
    sign_ins: Mutex<BTreeMap<String, ServerSignIn>>,
    /// Itself, for the search.
    this: Weak<Inner>,
    sink: OnceLock<ToolSink>,
    /// The number of tools of servers that were handed over last.
    published: AtomicUsize,
    /// Answers what the servers ask.
    user: OnceLock<Arc<dyn UserInput>>,
    /// When the session was started.
    started: OnceLock<Instant>,
    /// Keeps one call for the session.
    changed: Notify,
    /// Counts the changes, for those who wait for a state.
    changes: watch::Sender<u64>,
}

impl ServerWatcher for Inner {
    fn changed(&self, tools: bool) {
        if tools {
            self.publish();
        }
        self.changed.notify_one();
        self.changes.send_modify(|count| *count += 1);
    }

    fn user(&self) -> Option<Arc<dyn UserInput>> {
        self.user.get().cloned()
    }
}

impl McpSession {
    /// The servers of a configuration; `None` where it has none. Nothing is started; what is known of servers is read from files, and blocks.
    /// `on_demand`: [`start`](Self::start) connects none.
    #[must_use]
    pub fn new(
        config: McpConfig,
        context: &ServerContext,
        storage: OutputStorage,
        shared: &SharedServers,
        on_demand: bool,
    ) -> Option<Arc<Self>> {
        if config.servers.is_empty() {
            return None;
        }
        let servers = config.servers.iter().map(|entry| {
            let server = if entry.shared {
                shared.get(entry, context)
            } else {
                ServerLease::new(entry.clone(), context.clone())
            };
            (entry.name.clone(), SessionServer { server, enabled: entry.enabled, exposure: None })
        });
        let servers = servers.collect();
        let inner = Arc::new_cyclic(|this| Inner {
            this: Weak::clone(this),
            loaded: Mutex::default(),
            sign_ins: Mutex::default(),
            storage,
            servers: Mutex::new(servers),
            names: Mutex::default(),
            prompt_names: Mutex::default(),
            published: AtomicUsize::new(0),
            sink: OnceLock::new(),
            user: OnceLock::new(),
            started: OnceLock::new(),
            changed: Notify::new(),
            changes: watch::Sender::new(0),
            config,
            on_demand,
        });
        let watcher: Weak<dyn ServerWatcher> = {
            let weak: Weak<Inner> = Arc::downgrade(&inner);
            weak
        };
        inner.lock().values().for_each(|server| server.server.watch(watcher.clone()));
        Some(Arc::new(Self(inner)))
    }

    /// The configuration that it was made of.
    #[must_use]
    pub fn config(&self) -> &McpConfig {
        &self.0.config
    }

    /// Connects servers whose tools the model is told of and that were not connected lately, in the background; the tools of all go to `sink`.
    /// Others are connected by the first search or call.
    /// `loaded` are the names of tools that the model had before, in a
    /// session that goes on; `user` answers what servers ask. The first call counts. Must be called within the runtime.
    pub fn start(
        &self,
        loaded: impl IntoIterator<Item = String>,
        user: Option<Arc<dyn UserInput>>,
        sink: ToolSink,
    ) {
        // First: tools of a shared server may be there at once.
        user.map(|user| self.0.user.set(user));
        if self.0.sink.set(sink).is_err() {
            return;
        }
        self.0.loaded().extend(loaded.into_iter().filter(|name| name.contains(NAME_PART)));
        let _ = self.0.started.set(Instant::now());
        // A shared server may be there already.
        self.0.publish();
        let loaded = self.0.loaded().clone();
        if !self.0.on_demand {
            self.0.connect(|it| it.is_connected_at_once(&loaded));
        }
    }

    /// Waits until servers with tools for the model, of which nothing is known, are there or have failed, at most 10 seconds from the start. Cancel safe.
    pub async fn ready(&self) {
        self.connect_after_sign_ins().await;
        let Some(started) = self.0.started.get() else { return };
        // Tools that the model has loaded are declared already.
        let loaded = self.0.loaded().clone();
        self.0.until_settled(*started + READY_WAIT, |it| it.is_waited_for(&loaded)).await;
        // A server is connected a moment before its change is told, which makes its tools known.
        if self.0.has_unpublished() {
            self.0.publish();
        }
    }

    /// The section of the system prompt about servers whose tools are found by the search; `None` where there are none.
    #[must_use]
    pub fn prompt_section(&self) -> Option<String> {
        let servers = self.0.lock();
        let deferred: Vec<String> =
            servers.values().filter(|it| it.is_deferred()).map(SessionServer::prompt_line).collect();
        (!deferred.is_empty()).then(|| prompt_section(&deferred))
    }

    /// Of the tools that the model has loaded, only these stay declared.
    pub fn keep_loaded(&self, names: &[String]) {
        self.0.loaded().retain(|loaded| names.contains(loaded));
        self.0.publish();
    }

    /// The servers, as clients see them.
    #[must_use]
    pub fn list(&self) -> Vec<McpServerInfo> {
        let servers = self.0.lock();
        let mut names = self.0.names();
        servers.values().map(|it| info(it, &mut names)).collect()
    }

    /// Waits for a change of a server. One at a time may wait. Cancel safe.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Switches a server on or off, or exposes its tools otherwise.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn set(
        &self,
        name: &str,
        enabled: Option<bool>,
        exposure: Option<McpExposure>,
    ) -> Result<(), String> {
        let (server, is_wanted, is_shared) = {
            let mut servers = self.0.lock();
            let Some(found) = servers.get_mut(name) else { return Err(self.0.unknown(&servers, name)) };
            found.enabled = enabled.unwrap_or(found.enabled);
            found.exposure = exposure.or(found.exposure);
            (Arc::clone(&**found.server), found.is_wanted(), found.server.config().shared)
        };
        if is_wanted {
            server.connect_soon();
        } else if !is_shared {
            server.close().await;
        }
        self.0.changed(true);
        Ok(())
    }

    /// Ends the connection to a server and makes another one.
    ///
    /// # Errors
    /// There is no such server, or it is switched off. That it cannot be connected is no error: its state says so.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = {
            let servers = self.0.lock();
            let Some(found) = servers.get(name) else { return Err(self.0.unknown(&servers, name)) };
            if !found.enabled {
                return Err(format!(
                    "The MCP server \"{name}\" is switched off; set_mcp_server switches it on."
                ));
            }
            Arc::clone(&**found.server)
        };
        server.reconnect().await;
        Ok(())
    }

    /// Gives up to connect servers that no other session shares, for a session that is being closed. Connections that are there end when
    /// this is dropped.
    pub fn give_up_connecting(&self) {
        self.cancel_sign_ins();
        let servers = self.0.lock();
        servers
            .values()
            .filter(|it| !it.server.config().shared)
            .for_each(|it| it.server.give_up_connecting());
    }
}

/// A tool with the name by which the model calls it.
struct NamedTool<'a> {
    name: String,
    server: &'a SessionServer,
    definition: ToolDefinition,
    exposure: McpExposure,
}

impl Inner {
    /// Connects the servers of a kind in the background.
    fn connect(&self, is_meant: impl Fn(&SessionServer) -> bool) {
        let meant: Vec<_> = {
            let servers = self.lock();
            servers.values().filter(|it| is_meant(it)).map(|it| Arc::clone(&**it.server)).collect()
        };
        meant.iter().for_each(McpServer::connect_soon);
    }

    /// Waits until no server of a kind is being connected, at most until `limit`. Cancel safe.
    async fn until_settled(&self, limit: Instant, is_meant: impl Fn(&SessionServer) -> bool + Send) {
        let mut changes = self.changes.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                if !self.lock().values().any(|it| is_meant(it) && it.is_connecting()) {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = timeout_at(limit, waiting).await;
    }

    /// The tools of all servers that are not hidden, with their names, by name: the order in which servers are connected must not matter
    /// to the model's cache.
    fn named_tools<'a>(&self, servers: &'a BTreeMap<String, SessionServer>) -> Vec<NamedTool<'a>> {
        let mut found = Vec::new();
        for it in servers.values().filter(|it| it.is_wanted()) {
            found.extend(it.server.tools().iter().map(|tool| (it, tool.clone())));
        }
        let keys: Vec<(&str, &str)> =
            found.iter().map(|(it, tool)| (it.server.config().name.as_str(), tool.name.as_str())).collect();
        let names = self.names().name(&keys);
        let named = found.into_iter().zip(names).map(|((server, definition), name)| {
            let exposure = server.exposure_of(&definition.name);
            NamedTool { name, server, definition, exposure }
        });
        let mut named: Vec<NamedTool<'_>> = named.filter(|it| it.exposure != McpExposure::Hidden).collect();
        named.sort_by(|one, other| one.name.cmp(&other.name));
        named
    }

    /// Whether servers have other tools than were handed over last, by their number.
    fn has_unpublished(&self) -> bool {
        let servers = self.lock();
        self.named_tools(&servers).len() != self.published.load(Ordering::Relaxed)
    }

    /// Gives the tools of all servers to the session.
    fn publish(&self) {
        let Some(sink) = self.sink.get() else { return };
        let servers = self.lock();
        let loaded = self.loaded();
        let mut tools: Vec<ServerTool> = Vec::new();
        if servers.values().any(SessionServer::is_deferred) {
            let this: Weak<Inner> = Weak::clone(&self.this);
            let tool = Arc::new(SearchTool::new(this));
            tools.push(ServerTool { tool, server: None, timeout: None, is_direct: true, is_loaded: false });
        }
        let with_resources = || servers.values().filter(|it| it.has_resources());
        if with_resources().next().is_some() {
            let is_direct = with_resources().any(SessionServer::is_direct);
            let this: Weak<Inner> = Weak::clone(&self.this);
            let this: Weak<dyn ResourceServers> = this;
            tools.extend(resource_tools(&this, &self.storage).into_iter().map(|tool| {
                let is_loaded = loaded.contains(&tool.spec().name);
                ServerTool { tool, server: None, timeout: None, is_direct, is_loaded }
            }));
        }
        let named = self.named_tools(&servers);
        self.published.store(named.len(), Ordering::Relaxed);
        for NamedTool { name, server, definition, exposure } in named {
            let config = server.server.config();
            let is_loaded = loaded.contains(&name);
            let tool =
                McpTool::new(&server.server, &definition, name, (&self.storage, self.user.get().cloned()));
            tools.push(ServerTool {
                tool: Arc::new(tool),
                server: Some(config.name.clone()),
                timeout: Some(config.timeout),
                is_direct: exposure == McpExposure::Direct,
                is_loaded,
            });
        }
        sink(tools);
    }

    fn unknown(&self, servers: &BTreeMap<String, SessionServer>, name: &str) -> String {
        let known: Vec<&str> = servers.keys().map(String::as_str).collect();
        format!("There is no MCP server \"{name}\" in mcp.json; there are {}.", known.join(", "))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SessionServer>> {
        // No method panics halfway.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, NameTable> {
        // No method panics halfway.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prompt_names(&self) -> MutexGuard<'_, NameTable> {
        // No method panics halfway.
        self.prompt_names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sign_ins(&self) -> MutexGuard<'_, BTreeMap<String, ServerSignIn>> {
        // No method panics halfway.
        self.sign_ins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // No method panics halfway.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the names of all tools that can be loaded have in them.
const NAME_PART: &str = "mcp_";
