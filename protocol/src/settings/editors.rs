//! The setting `acp`.

use serde::{Deserialize, Serialize};

/// Sessions of editors (`agentd acp`). Only read from the user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AcpSettings {
    /// Whether commands of the model run in the editor's terminal, where the editor offers one; default false. Not in a sandbox, not on
    /// another host, and not in sessions of a shared daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub client_terminal: Option<bool>,
}
