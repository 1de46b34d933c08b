//! The MCP servers that a session is opened with.

use agentd_config::{AgentDir, ProjectFolders};
use agentd_mcp::McpConfig;
use agentd_protocol::resources::Diagnostic;

use crate::options::SessionOptions;

/// What the user's `mcp.json` and that of a trusted project say, and the servers of the client, unless the session is to have no servers. Blocks.
pub(super) fn mcp_config(
    options: &SessionOptions,
    agent_dir: &AgentDir,
    trusted: Option<&ProjectFolders>,
    found: &mut Vec<Diagnostic>,
) -> McpConfig {
    if options.no_mcp {
        return McpConfig::default();
    }
    McpConfig::load(agent_dir, trusted, found).with_given(&options.mcp_servers)
}
