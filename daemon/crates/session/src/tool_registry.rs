//! The one registry of a session's tools: whatever provides a tool registers it here as a `dyn Tool` with its owner.
//!
//! agentd itself, connected clients and MCP servers are owners. The registry outlives the session's stay in memory, because the tools of
//! clients do; built-in tools leave it when the session is unloaded. It knows nothing of how a tool is called.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_agent::Tool;
use agentd_protocol::tool_list::{ToolSource, ToolState};
use tokio::sync::Notify;

/// The tools of one session. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ToolRegistry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Keeps one call for the session, which need not be in memory.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// In the order in which models see them: by owner, then as they were registered.
    registered: Vec<RegisteredTool>,
    /// Counts the changes that owners made by themselves.
    version: u64,
    /// The version and a hash of the tools that were published last. A hash, since it is kept while the session is not in memory.
    told: Option<(u64, u64)>,
}

/// A tool in the registry.
#[derive(Clone)]
pub(crate) struct RegisteredTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) owner: ToolOwner,
    /// Whether the model can call it. Of a tool that no client provides: where nobody chose the session's tools.
    pub(crate) active: bool,
}

impl RegisteredTool {
    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }
}

/// The owner of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolOwner {
    /// agentd itself.
    Builtin,
    /// A connected client.
    Client {
        /// The number of its [`ToolProvider`](crate::ToolProvider).
        provider: u64,
        /// The client's name, for people.
        client: String,
        /// The time for a call.
        timeout: Option<Duration>,
    },
    /// An MCP server.
    Mcp {
        /// Its name in mcp.json; `None` for the search among the tools of all servers.
        server: Option<String>,
        /// The time for a call.
        timeout: Option<Duration>,
        /// Whether the model has loaded the tool by that search. Then it is active whatever was chosen before.
        is_loaded: bool,
    },
    /// An extension.
    Extension,
    /// A file of the user or of the project, which names a program.
    File {
        /// The time for a call.
        timeout: Option<Duration>,
    },
}

impl ToolOwner {
    /// The owner as clients see it.
    pub(crate) fn source(&self) -> ToolSource {
        match self {
            Self::Builtin => ToolSource::Builtin,
            Self::Client { .. } => ToolSource::Client,
            Self::Mcp { .. } => ToolSource::Mcp,
            Self::Extension => ToolSource::Extension,
            Self::File { .. } => ToolSource::File,
        }
    }

    /// The name of the client that provides the tool.
    pub(crate) fn client(&self) -> Option<&str> {
        match self {
            Self::Client { client, .. } => Some(client),
            Self::Builtin | Self::Mcp { .. } | Self::Extension | Self::File { .. } => None,
        }
    }

    /// The name of the MCP server that provides the tool.
    pub(crate) fn server(&self) -> Option<&str> {
        match self {
            Self::Mcp { server, .. } => server.as_deref(),
            Self::Builtin | Self::Client { .. } | Self::Extension | Self::File { .. } => None,
        }
    }

    /// The time for a call.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Client { timeout, .. } | Self::Mcp { timeout, .. } | Self::File { timeout } => *timeout,
            Self::Builtin | Self::Extension => None,
        }
    }

    /// Whether a client provides the tool, whose active tools are its registration's.
    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Self::Client { .. })
    }
}

impl ToolRegistry {
    /// The number of changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    /// The tools in order, and how many changes there were.
    pub(crate) fn registered(&self) -> (u64, Vec<RegisteredTool>) {
        let state = self.lock();
        (state.version, state.registered.clone())
    }

    /// Adds tools. One with the name of another takes its place.
    pub(crate) fn register(&self, tools: impl IntoIterator<Item = RegisteredTool>) {
        let mut state = self.lock();
        for new in tools {
            match state.registered.iter_mut().find(|old| old.name() == new.name()) {
                Some(old) => *old = new,
                None => state.add(new),
            }
        }
        state.version += 1;
    }

    /// Makes `tools` all tools of a source, in this order. The session replaces its built-in tools itself, and needs no notice of that; of
    /// others it hears where it waits for that.
    pub(crate) fn replace(&self, source: ToolSource, tools: impl IntoIterator<Item = RegisteredTool>) {
        let mut state = self.lock();
        state.registered.retain(|old| old.owner.source() != source);
        tools.into_iter().for_each(|tool| state.add(tool));
        if source != ToolSource::Builtin {
            state.version += 1;
            self.0.changed.notify_one();
        }
    }

    /// Whether there is a tool of that source.
    pub(crate) fn has(&self, source: ToolSource) -> bool {
        self.lock().registered.iter().any(|registered| registered.owner.source() == source)
    }

    /// Activates exactly the tools of these names, and deactivates the others, as far as clients provide them.
    pub(crate) fn activate_of_clients(&self, names: &[String]) {
        let mut state = self.lock();
        let mut changes = false;
        for registered in state.registered.iter_mut().filter(|registered| registered.owner.is_client()) {
            let active = names.iter().any(|name| name == registered.name());
            changes |= std::mem::replace(&mut registered.active, active) != active;
        }
        state.version += u64::from(changes);
    }

    /// Takes tools of a client away: those of these names, or all. The names of those that are gone. The session hears of it where it
    /// waits for that, or when it is in memory again.
    pub(crate) fn unregister(&self, client: u64, names: Option<&[String]>) -> Vec<String> {
        let mut gone = Vec::new();
        let mut state = self.lock();
        state.registered.retain(|registered| {
            let name = registered.name();
            let is_theirs =
                matches!(&registered.owner, ToolOwner::Client { provider, .. } if *provider == client);
            let goes = is_theirs && names.is_none_or(|names| names.iter().any(|wanted| wanted == name));
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
        let mut hasher = DefaultHasher::new();
        tools.hash(&mut hasher);
        let mut state = self.lock();
        let now = (state.version, hasher.finish());
        let before = state.told.replace(now);
        before.is_some() && before != state.told
    }

    /// Waits for a change that an owner made by itself. One at a time may wait. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a tool behind those of its own source: built-in tools come first, then clients' and servers'.
    fn add(&mut self, new: RegisteredTool) {
        let rank = |owner: &ToolOwner| match owner {
            ToolOwner::Builtin => 0,
            ToolOwner::Client { .. } => 1,
            ToolOwner::Mcp { .. } => 2,
            ToolOwner::Extension => 3,
            ToolOwner::File { .. } => 4,
        };
        let at = self.registered.partition_point(|old| rank(&old.owner) <= rank(&new.owner));
        self.registered.insert(at, new);
    }
}

#[cfg(test)]
mod tests {
    use agentd_agent::{Invocation, ToolFuture};
    use agentd_protocol::tool::{ToolResult, ToolSpec};
    use serde_json::Value;

    use super::*;

    struct Named(Arc<ToolSpec>);

    impl Tool for Named {
        fn spec(&self) -> &Arc<ToolSpec> {
            &self.0
        }

        fn execute(&self, _invocation: Invocation) -> ToolFuture<'_> {
            Box::pin(async { Ok(ToolResult::default()) })
        }
    }

    fn tool(name: &str, owner: ToolOwner) -> RegisteredTool {
        let spec = ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: Value::Null,
            constrained_sampling: None,
        };
        RegisteredTool { tool: Arc::new(Named(Arc::new(spec))), owner, active: true }
    }

    fn client(provider: u64) -> ToolOwner {
        ToolOwner::Client { provider, client: format!("client {provider}"), timeout: None }
    }

    fn server(name: &str) -> ToolOwner {
        ToolOwner::Mcp { server: Some(name.into()), timeout: None, is_loaded: false }
    }

    fn names(registry: &ToolRegistry) -> Vec<String> {
        registry.registered().1.iter().map(|registered| registered.name().to_owned()).collect()
    }

    #[test]
    fn tools_stand_by_owner_however_they_came() {
        let registry = ToolRegistry::default();
        registry.replace(ToolSource::Mcp, [tool("m1", server("s")), tool("m2", server("s"))]);
        registry.register([tool("c", client(1))]);
        registry.replace(ToolSource::Builtin, [tool("read", ToolOwner::Builtin)]);
        assert_eq!(names(&registry), ["read", "c", "m1", "m2"]);
        registry.replace(ToolSource::Builtin, [tool("bash", ToolOwner::Builtin)]);
        registry.replace(ToolSource::Mcp, [tool("m3", server("t"))]);
        assert_eq!(names(&registry), ["bash", "c", "m3"]);
        registry.register([tool("c", client(1)), tool("d", client(2))]);
        assert_eq!(names(&registry), ["bash", "c", "d", "m3"]);
        assert_eq!(registry.unregister(1, None), ["c"]);
        assert_eq!(registry.unregister(1, None), [""; 0]);
        assert_eq!(names(&registry), ["bash", "d", "m3"]);
    }

    #[test]
    fn a_choice_among_the_tools_of_clients_leaves_the_others_alone() {
        let registry = ToolRegistry::default();
        registry.replace(ToolSource::Builtin, [tool("read", ToolOwner::Builtin)]);
        registry.register([tool("c", client(1)), tool("d", client(1))]);
        let version = registry.version();
        registry.activate_of_clients(&["d".to_owned()]);
        assert_eq!(registry.version(), version + 1);
        let active: Vec<bool> = registry.registered().1.iter().map(|registered| registered.active).collect();
        assert_eq!(active, [true, false, true]);
        registry.activate_of_clients(&["d".to_owned()]);
        assert_eq!(registry.version(), version + 1, "nothing changed");
    }
}
