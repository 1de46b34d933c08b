//! The setting `plan`: planning before anything is changed.

use serde::{Deserialize, Serialize};

/// Plan mode.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PlanSettings {
    /// Whether sessions can be put into plan mode; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// Milliseconds after which a proposed plan is left undecided: the run ends, and plan mode stays on. Default 0: the question waits as
    /// other questions of the model do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
