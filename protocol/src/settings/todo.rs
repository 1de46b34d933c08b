//! The setting `todo`: the model's list of what is to be done.

use serde::{Deserialize, Serialize};

/// The tool `todo`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TodoSettings {
    /// Whether the tool is active in new sessions; default false, in editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}
