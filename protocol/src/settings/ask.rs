//! The setting `ask`: questions of the model to the user.

use serde::{Deserialize, Serialize};

/// The tool `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AskSettings {
    /// Whether the tool is active in new sessions; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Milliseconds after which the recommended answer to a question counts, or the first where none is recommended. Default 0: the
    /// question waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
