//! The tools of a session: which there are, and which of them the model can call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::{ConstrainedSampling, ToolAnnotations};

/// The answer to `get_tools`, in the order in which the model sees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolList {
    /// Every tool that the session has, active or not. Tools that flags or settings exclude are not among them.
    pub tools: Vec<ToolInfo>,
}

/// A tool of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The name, case sensitive.
    pub name: String,
    /// The name that people see; where the tool has none, its `name`.
    pub label: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Whether the model can call it, from the next turn on.
    pub active: bool,
    /// Its source.
    pub source: ToolSource,
    /// Its client, for `source` `client`: the name from `hello`, else the client's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Its server, for `source` `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its line in the list of tools of the system prompt; without one it is not in that list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Advice for the system prompt, a sentence each.
    pub guidelines: Vec<String>,
    /// Whether calls may run beside others.
    pub execution: ToolExecution,
    /// The time limit of a call in milliseconds; absent for no limit, and for built-in tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The provider's enforcement of the schema while the model samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<ConstrainedSampling>,
    /// What its server says of it, for `source` `mcp`. They are claims: permissions count none that the user does not trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
}

/// The source of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolSource {
    /// agentd itself.
    Builtin,
    /// A client that is connected (`register_tools`).
    Client,
    /// An MCP server of `mcp.json`.
    Mcp,
    /// An extension.
    Extension,
    /// A file in a folder `tools` of the user or of the project, which names a program.
    File,
}

/// Whether calls of a tool may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolExecution {
    /// They may.
    #[default]
    Parallel,
    /// One such call makes all calls of its answer run one after the other.
    Sequential,
}

/// The fields of `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetActiveToolsParams {
    /// The names of all tools that are to be active; none deactivates every tool.
    pub tools: Vec<String>,
}

/// The answer to `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveTools {
    /// The names of the active tools, in the order in which the model sees them.
    pub tools: Vec<String>,
}

/// The tools of a session, or which of them are active, changed: what is here counts from the next turn on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolsChanged {
    /// All tools of the session, as `get_tools` lists them.
    pub tools: Vec<ToolState>,
}

/// What [`ToolsChanged`] says of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolState {
    /// The name.
    pub name: String,
    /// Whether the model can call it.
    pub active: bool,
    /// Its source.
    pub source: ToolSource,
    /// Its client, for `source` `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Its server, for `source` `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The name that people see, where that is not `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What its server says of it, for `source` `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
}
