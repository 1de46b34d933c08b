//! `agentctl mcp add`, `remove`, `enable` and `disable`.

use clap::{Args, builder::PossibleValuesParser};

const ADD_HELP: &str = "\
Examples:
  agentctl mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  agentctl mcp add --env 'TOKEN=${TRACKER_TOKEN}' --exposure direct tracker -- tracker-mcp --stdio
  agentctl mcp add --url https://docs.example/mcp --bearer-token-env-var DOCS_TOKEN docs
  agentctl mcp add --local build -- ./tools/mcp-server

Writes the entry into mcp.json of the agent directory, or with --local into .agentd/mcp.json of the working directory. Everything else in the
file stays as it is. Values may hold ${NAME}, which is a variable of the session's environment, or be !COMMAND as a whole, which is what the
command prints when the server is connected.

Exit codes:
  0    the server is in the file
  1    it is not; the message says why
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp add`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ADD_HELP)]
pub(crate) struct McpAddOptions {
    /// The server's name: letters, digits, _ and -
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The program to start, and its arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) args: Vec<String>,

    /// The address of a server that is reached by HTTP, instead of a program
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Use the mcp.json of the project in the working directory
    #[arg(short, long)]
    pub(crate) local: bool,

    /// A variable for the program; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// The program's working directory (default: the session's)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,

    /// A header of each request to the URL, NAME=VALUE or 'NAME: VALUE'; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,

    /// The variable with the token for the header Authorization
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_token_env_var: Option<String>,

    /// How the model gets to its tools (docs/mcp.md)
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["deferred", "direct", "hidden"]))]
    pub(crate) exposure: Option<String>,

    /// The server's purpose, for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// The time for a call, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,

    /// Let sessions with the same configuration share the program
    #[arg(long)]
    pub(crate) shared: bool,

    /// Count tools that the server calls read-only as reading (docs/permissions.md)
    #[arg(long, conflicts_with = "local")]
    pub(crate) trust_hints: bool,

    /// Replace a server of that name
    #[arg(long)]
    pub(crate) force: bool,
}

const REMOVE_HELP: &str = "\
Examples:
  agentctl mcp remove files
  agentctl mcp remove --local build

Exit codes:
  0    the server is not in the file any more
  1    it was not there, or the file cannot be changed
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp remove`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REMOVE_HELP)]
pub(crate) struct McpRemoveOptions {
    #[command(flatten)]
    pub(crate) entry: McpEntryOptions,
}

const ENABLE_HELP: &str = "\
Examples:
  agentctl mcp enable files

Exit codes:
  0    sessions use the server from now on
  1    there is no such server, or the file cannot be changed
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp enable`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ENABLE_HELP)]
pub(crate) struct McpEnableOptions {
    #[command(flatten)]
    pub(crate) entry: McpEntryOptions,
}

const DISABLE_HELP: &str = "\
Examples:
  agentctl mcp disable files
  agentctl mcp disable --local files

With --local a server of the user's file is switched off for this project alone.

Exit codes:
  0    sessions do not use the server from now on
  1    there is no such server, or the file cannot be changed
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl mcp disable`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DISABLE_HELP)]
pub(crate) struct McpDisableOptions {
    #[command(flatten)]
    pub(crate) entry: McpEntryOptions,
}

/// An entry of a `mcp.json`.
#[derive(Debug, Clone, Args)]
pub(crate) struct McpEntryOptions {
    /// The server's name in mcp.json
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Use the mcp.json of the project in the working directory
    #[arg(short, long)]
    pub(crate) local: bool,
}
