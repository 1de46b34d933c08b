//! The request of `agentctl mcp add`, `remove`, `enable` and `disable` to `agentd` on its stdin, and the answer: one line of JSON each.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of one entry of a `mcp.json`. It may hold secrets, and so has no `Debug`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpEditRequest {
    /// Whether the file is that of the project in the working directory, not the user's.
    #[serde(default)]
    pub project: bool,
    /// The server.
    pub name: String,
    /// The change.
    pub change: McpChange,
}

/// A change of an entry.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum McpChange {
    /// Adds it.
    Add {
        /// The entry.
        entry: Map<String, Value>,
        /// Whether it may replace one that is there.
        force: bool,
    },
    /// Takes it out.
    Remove,
    /// Sets `enabled`.
    SetEnabled(bool),
}

/// A changed `mcp.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpEdited {
    /// The file, absolute.
    pub path: String,
    /// Whether the entry is another one than before.
    pub changed: bool,
    /// Whether the file is used: that of a project needs the project's trust.
    pub used: bool,
    /// What the user should know: secrets in the file, entries of the same name elsewhere. Never a secret.
    pub warnings: Vec<String>,
}
