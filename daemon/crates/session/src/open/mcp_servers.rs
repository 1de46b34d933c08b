//! The MCP servers that a session is opened with.

use std::path::Path;

use agentd_config::{AgentDir, ProjectFolders};
use agentd_discovery::{DiscoveryPlace, Switches, merge};
use agentd_mcp::McpConfig;
use agentd_protocol::{resources::Diagnostic, settings::DiscoverySettings};

use super::target::same_folder;
use crate::{options::SessionOptions, services::Services};

/// Where servers are looked for.
pub(super) struct McpSources<'a> {
    pub(super) services: &'a Services,
    pub(super) options: &'a SessionOptions,
    pub(super) agent_dir: &'a AgentDir,
    /// The session's working directory.
    pub(super) cwd: &'a Path,
    /// The setting `discovery`.
    pub(super) discovery: Option<&'a DiscoverySettings>,
    /// The project's own folders; `None` where it is not trusted.
    pub(super) trusted: Option<&'a ProjectFolders>,
}

/// What the user's `mcp.json` and that of a trusted project say, the servers of other tools' files, and those of the client, unless the session is to
/// have no servers. Blocks.
pub(super) fn mcp_config(sources: &McpSources<'_>, found: &mut Vec<Diagnostic>) -> McpConfig {
    let McpSources { services, options, agent_dir, cwd, discovery, trusted } = *sources;
    if options.no_mcp {
        return McpConfig::default();
    }
    let switches = Switches::of(discovery);
    let place = DiscoveryPlace::of(cwd, agent_dir, &options.environment);
    let snapshot = services.discovery.scan(&place, &switches);
    let is_trusted = trusted.is_some() && same_folder(&options.cwd, cwd);
    let capabilities = merge(Vec::new(), &snapshot, &switches, is_trusted);
    let mut config = McpConfig::load(agent_dir, trusted, found);
    config.servers.retain(|server| !switches.disables(&format!("mcp:{}", server.name)));
    let discovered = capabilities.servers(&options.environment);
    config.with_discovered(discovered, &options.environment, found).with_given(&options.mcp_servers)
}
