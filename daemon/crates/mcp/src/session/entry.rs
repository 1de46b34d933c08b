//! A server of a session: what the session has changed of it, and how it is shown.

use std::{collections::BTreeSet, sync::Arc};

use agentd_protocol::{
    mcp::{McpExposure, McpServerInfo, McpServerState},
    text_bounds,
};

use crate::{
    names::{NameTable, is_of_one_server, may_name, namespace},
    search_tool::SEARCH_TOOL,
    server::{Knowledge, ServerLease},
};

/// The longest line of a server in the system prompt, in bytes.
const MAX_PROMPT_LINE: usize = 250;

/// A server, and what the session has changed of it.
pub(super) struct SessionServer {
    pub(super) server: Arc<ServerLease>,
    pub(super) enabled: bool,
    /// Takes the place of what the entry says.
    pub(super) exposure: Option<McpExposure>,
}

impl SessionServer {
    pub(super) fn exposure_of(&self, tool: &str) -> McpExposure {
        self.exposure.unwrap_or_else(|| self.server.config().exposure_of(tool))
    }

    /// Whether there is a reason to connect it.
    pub(super) fn is_wanted(&self) -> bool {
        let is_hidden = match self.exposure {
            Some(exposure) => exposure == McpExposure::Hidden,
            None => self.server.config().is_hidden(),
        };
        self.enabled && !is_hidden
    }

    pub(super) fn is_direct(&self) -> bool {
        self.is_wanted()
            && match self.exposure {
                Some(exposure) => exposure == McpExposure::Direct,
                None => self.server.config().is_direct(),
            }
    }

    /// Whether some tools are found by the search alone.
    pub(super) fn is_deferred(&self) -> bool {
        self.is_wanted()
            && match self.exposure {
                Some(exposure) => exposure == McpExposure::Deferred,
                None => self.server.config().is_deferred(),
            }
    }

    /// Whether it has resources that the model may read.
    pub(super) fn has_resources(&self) -> bool {
        self.is_wanted() && self.server.has_resources()
    }

    /// Whether it is being connected, or about to be.
    pub(super) fn is_connecting(&self) -> bool {
        self.server.view().state == McpServerState::Connecting
    }

    /// Whether it waits until something of it is needed.
    pub(super) fn is_idle(&self) -> bool {
        self.server.view().state == McpServerState::Idle
    }

    /// Whether it is connected when the session begins: the model is to be told of its tools, and they are not known, or not for sure.
    pub(super) fn is_connected_at_once(&self, loaded: &BTreeSet<String>) -> bool {
        self.server.knowledge() != Knowledge::Kept { is_fresh: true } && self.is_declared(loaded)
    }

    /// Whether the first prompt waits for it: the model is to be told of its tools, and nothing is known of them.
    pub(super) fn is_waited_for(&self, loaded: &BTreeSet<String>) -> bool {
        !matches!(self.server.knowledge(), Knowledge::Kept { .. }) && self.is_declared(loaded)
    }

    /// Whether the model is to be told of its tools when the session begins, or has loaded some.
    fn is_declared(&self, loaded: &BTreeSet<String>) -> bool {
        // Tools for resources are those of all servers.
        let is_of_server =
            |name: &String| !is_of_one_server(name) || may_name(&self.server.config().name, name);
        self.is_direct() || (self.is_deferred() && loaded.iter().any(is_of_server))
    }

    /// Its line in the system prompt.
    pub(super) fn prompt_line(&self) -> String {
        let config = self.server.config();
        let about = config.description.clone().or_else(|| self.server.instructions());
        let about = about.unwrap_or_default();
        let first = about.trim().lines().next().unwrap_or_default();
        let line = format!("- {}: {first}", namespace(&config.name));
        text_bounds::head(line.trim_end_matches([':', ' ']), MAX_PROMPT_LINE).to_owned()
    }

    fn state(&self) -> McpServerState {
        match self.server.view().state {
            _ if !self.enabled => McpServerState::Disabled,
            // Nothing of it will ever be needed.
            McpServerState::Idle if !self.is_wanted() => McpServerState::Disconnected,
            state => state,
        }
    }
}

/// The server as clients see it.
pub(super) fn info(it: &SessionServer, names: &mut NameTable) -> McpServerInfo {
    let (config, view) = (it.server.config(), it.server.view());
    let definitions = it.server.tools();
    let shown: Vec<(&str, &str)> = definitions
        .iter()
        .filter(|tool| it.enabled && it.exposure_of(&tool.name) != McpExposure::Hidden)
        .map(|tool| (config.name.as_str(), tool.name.as_str()))
        .collect();
    let facts = view.facts;
    let prompts = it.server.prompts().iter().map(|prompt| prompt.name.clone()).collect();
    McpServerInfo {
        name: config.name.clone(),
        path: config.path.display().to_string(),
        transport: config.transport(),
        state: it.state(),
        enabled: it.enabled,
        exposure: it.exposure.unwrap_or(config.exposure),
        shared: config.shared,
        error: view.error.filter(|_| it.enabled),
        tools: names.name(&shown),
        prompts: if it.is_wanted() { prompts } else { Vec::new() },
        server_name: facts.as_ref().and_then(|facts| facts.name.clone()),
        server_version: facts.as_ref().and_then(|facts| facts.version.clone()),
        protocol_version: facts.map(|facts| facts.revision),
        pid: view.pid,
    }
}

/// The longest section of the system prompt about servers, in bytes.
const MAX_PROMPT_SECTION: usize = 4096;

/// The section of the system prompt about servers whose tools are found by the search.
pub(super) fn prompt_section(lines: &[String]) -> String {
    let mut text = format!("Tools of these MCP servers can be loaded with {SEARCH_TOOL}:");
    let mut left_out = 0;
    for line in lines {
        if left_out > 0 || text.len() + line.len() > MAX_PROMPT_SECTION {
            left_out += 1;
        } else {
            text.push('\n');
            text.push_str(line);
        }
    }
    if left_out > 0 {
        text.push_str(&format!("\n(and {left_out} more)"));
    }
    text
}
