//! MCP servers of a session: which there are, and in which state.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    credentials::{read_optional_secret, write_optional_secret},
    secret::Secret,
};

/// The answer to `get_mcp_servers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServers {
    /// The servers of `mcp.json` and of clients, by name.
    pub servers: Vec<McpServerInfo>,
}

/// An MCP server of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    /// Its name.
    pub name: String,
    /// The file that it stands in, absolute; empty for one that a client gave.
    pub path: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Its state.
    pub state: McpServerState,
    /// Whether the session uses it.
    pub enabled: bool,
    /// How the model gets to its tools, where `toolExposure` says nothing else of one.
    pub exposure: McpExposure,
    /// Whether sessions with the same configuration share it.
    pub shared: bool,
    /// Why it is in this state, where that is not what it should be. Never a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The names of its tools as the model calls them, hidden ones excepted.
    pub tools: Vec<String>,
    /// The names of its prompts, as the server calls them; `get_commands` has them as commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// What the server calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// The revision of MCP that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The process id of a server that agentd has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
}

/// MCP servers that a client gives a session: entries as in `mcp.json`, by name. Their values are taken as they are: neither `${NAME}` nor
/// `!command` has a meaning. They are kept in memory only.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GivenMcpServers(pub BTreeMap<String, Value>);

/// The names alone: values of `env` and `headers` are secrets.
impl fmt::Debug for GivenMcpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum McpTransport {
    /// A process that agentd starts, by its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum McpServerState {
    /// The session does not use it.
    Disabled,
    /// Nothing of it was needed yet: the first search for tools connects it.
    Idle,
    /// It is being connected.
    Connecting,
    /// It is there.
    Connected,
    /// The connection has ended; the next call makes another one.
    Disconnected,
    /// It wants the user to sign in: `mcp_login_start`.
    NeedsAuth,
    /// It could not be connected; the next call tries again after a pause.
    Failed,
}

/// How the model gets to a server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum McpExposure {
    /// They are declared to the model.
    Direct,
    /// They are declared once `tool_search` has found them.
    #[default]
    Deferred,
    /// They are not there.
    Hidden,
}

/// The fields of `set_mcp_server`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetMcpServerParams {
    /// The server.
    pub name: String,
    /// Whether the session uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How the model gets to its tools. Replaces `toolExposure`, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<McpExposure>,
}

/// The fields of `reconnect_mcp_server`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReconnectMcpServerParams {
    /// The server.
    pub name: String,
}

/// The fields of `mcp_login_start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpLoginStartParams {
    /// The server.
    pub name: String,
    /// The time that the user has, in seconds; default 600, at most 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// The answer to `mcp_login_start`: what the user does now, while `mcp_login_finish` waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpLoginStarted {
    /// Names the sign-in.
    pub login_id: String,
    /// The server.
    pub name: String,
    /// The address for the user to open in a browser: `http` or `https`.
    pub url: String,
    /// Where the browser comes back to, on the daemon's machine. From another machine it cannot: then the user pastes the address that the
    /// browser ended at (`mcp_login_finish` with `code`).
    pub redirect_uri: String,
    /// The time limit of the sign-in in seconds.
    pub expires_in_seconds: u64,
}

/// The fields of `mcp_login_finish`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpLoginFinishParams {
    /// The sign-in.
    pub login_id: String,
    /// The whole address that the browser ended at, as the user pasted it. A useless one is refused, and the sign-in continues.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_optional_secret",
        deserialize_with = "read_optional_secret"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub code: Option<Secret>,
}

/// The fields of `mcp_login_cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpLoginCancelParams {
    /// The sign-in.
    pub login_id: String,
}

/// The answer to `mcp_login_cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpLoginCancelled {
    /// Whether there was such a sign-in.
    pub cancelled: bool,
}

/// The fields of `mcp_logout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpLogoutParams {
    /// The server. It need not stand in `mcp.json` any more.
    pub name: String,
}

/// The answer to `mcp_logout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpLogout {
    /// The server.
    pub name: String,
    /// The path of `mcp-auth.json`.
    pub file: String,
}

/// The MCP servers of the session, their states or their tools have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServersChange {
    /// All servers, as `get_mcp_servers` lists them.
    pub servers: Vec<McpServerInfo>,
}
