//! `agentctl mcp`.

use clap::{Args, Subcommand};

use super::mcp_edit::{McpAddOptions, McpDisableOptions, McpEnableOptions, McpRemoveOptions};

/// The verbs of `agentctl mcp`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mcp {
    /// Add a server to mcp.json
    Add(Box<McpAddOptions>),

    /// Take a server out of mcp.json
    Remove(McpRemoveOptions),

    /// Have sessions use a server of mcp.json again
    Enable(McpEnableOptions),

    /// Have sessions not use a server of mcp.json
    Disable(McpDisableOptions),

    /// Connect the MCP servers of mcp.json, and show which are there
    List(McpListOptions),

    /// Connect one of them, and show what it says of itself and its tools
    Test(McpTestOptions),
}

const LIST_HELP: &str = "\
Examples:
  agentctl mcp list
  agentctl mcp list --json | jq '.servers[] | select(.state == \"failed\")'

Starts and connects every server that a session in this folder would have, and ends them again. Servers of the project count only where the
project is trusted.

Exit codes:
  0    every enabled server is there, and mcp.json has no mistakes
  1    one is not, or an entry is wrong
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct McpListOptions {
    /// Print JSON: {servers, diagnostics}
    #[arg(long)]
    pub(crate) json: bool,

    /// Use the servers of the project as if it were trusted
    #[arg(long)]
    pub(crate) approve: bool,
}

const TEST_HELP: &str = "\
Examples:
  agentctl mcp test files

Exit codes:
  0    the server is there
  1    it is not, or there is no such server
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp test`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TEST_HELP)]
pub(crate) struct McpTestOptions {
    /// The server's name in mcp.json
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Use the servers of the project as if it were trusted
    #[arg(long)]
    pub(crate) approve: bool,
}
