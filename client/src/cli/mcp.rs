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

    /// Sign in to one of them in a browser
    Login(McpLoginOptions),

    /// Forget the sign-in to one of them
    Logout(McpLogoutOptions),
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

const LOGIN_HELP: &str = "\
Examples:
  agentctl mcp login tracker
  agentctl mcp login tracker --no-browser --timeout 120

Prints the address of the sign-in, and waits until the browser comes back. Where the browser is on another machine, paste the address that it
ends at. The tokens are stored in mcp-auth.json of the agent directory; sessions that are open use them from their next request on.

Exit codes:
  0    signed in, and the server is there
  1    not signed in, or the server is not there all the same
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp login`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct McpLoginOptions {
    /// The server's name in mcp.json
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Give up after so many seconds; default 600, at most 3600
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: Option<u64>,

    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Use the servers of the project as if it were trusted
    #[arg(long)]
    pub(crate) approve: bool,
}

const LOGOUT_HELP: &str = "\
Examples:
  agentctl mcp logout tracker

Exit codes:
  0    the sign-in was removed from mcp-auth.json
  1    there is none, or the file cannot be written
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp logout`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGOUT_HELP)]
pub(crate) struct McpLogoutOptions {
    /// The server's name; it need not stand in mcp.json any more
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}
