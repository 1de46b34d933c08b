//! The extensions of a session, and their hosts.

use serde::{Deserialize, Serialize};

use crate::resources::SourceInfo;

/// The answer to `list_extensions` and `restart_extensions`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtensionList {
    /// The extensions, in load order.
    pub extensions: Vec<ExtensionStatus>,
}

/// An extension of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionStatus {
    /// Its name in errors: the path that was given or found.
    pub path: String,
    /// Where it comes from.
    pub source_info: SourceInfo,
    /// What runs it.
    pub kind: ExtensionHostKind,
    /// The process id of its host, while that runs. All extensions for Node have one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_pid: Option<i32>,
    /// Its state.
    pub state: ExtensionState,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The names of its commands, as it registered them.
    pub commands: Vec<String>,
    /// The names of its flags.
    pub flags: Vec<String>,
    /// The events that it listens to.
    pub events: Vec<String>,
    /// The milliseconds that loading it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<f64>,
    /// Its last failure, or the end of its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What runs an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExtensionHostKind {
    /// The Node host, together with all others of the session.
    Node,
    /// A program of its own.
    Native,
}

/// The state of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExtensionState {
    /// It is loaded, and its host runs.
    Running,
    /// Its host has ended and is started again.
    Restarting,
    /// It could not be loaded, or its host has ended for good.
    Failed,
}
