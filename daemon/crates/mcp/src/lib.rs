//! The client of MCP servers (Model Context Protocol): what `mcp.json` says, and for each session its servers and their tools.
//!
//! From the inside out: `message` is JSON-RPC, `peer` a connection's requests, `stdio` and `http` are its transports, `server` a server that is
//! connected, called and connected again, [`McpSession`] the servers of a session. The session gets tools that are `dyn Tool`, like all
//! others, and never sees the protocol.
//!
//! A server is somebody else's program. It may hang, flood, lie or end at any time: every wait has a limit, every buffer a bound, and what
//! goes wrong is the result of its own calls.

mod config;
mod definition;
mod definition_cache;
mod elicitation;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod header_arguments;
mod http;
mod inspect;
mod launch;
mod line_reader;
mod message;
mod names;
mod oauth;
mod peer;
mod prompt;
mod resource_tools;
mod result;
mod revision;
mod search;
mod search_tool;
mod server;
mod session;
mod shared;
mod sse;
mod stdio;
mod tool;
mod transport;
mod values;

pub use config::{
    ClientRegistration, EditedConfig, Endpoint, Grant, IdentityProvider, MCP_FILE, McpConfig, McpEditError,
    OAuthConfig, RevisionChoice, ServerConfig, SignIn, edit_mcp_config, given_servers,
};
pub use definition_cache::MCP_CACHE;
pub use elicitation::{UserAnswer, UserInput};
pub use inspect::obstacles;
pub use launch::ServerContext;
pub use oauth::{OAuthError, StartedSignIn, sign_out, stored_secrets};
pub use prompt::{PromptCommand, PromptError, PromptText};
pub use resource_tools::RESOURCE_URL;
pub use search_tool::SEARCH_TOOL;
pub use session::{McpSession, ServerTool, ToolSink};
pub use shared::SharedServers;

/// The name of the log of servers, in the agent directory.
pub const MCP_LOG: &str = "mcp.log";
