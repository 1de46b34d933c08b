//! The setting `promptHistory`: keeping the user's prompts, to be found again.

use serde::{Deserialize, Serialize};

/// The prompts of the user, kept over all sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PromptHistorySettings {
    /// Whether prompts are kept; default true. What was kept before stays until it is deleted (`agentctl history --delete-all`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
}
