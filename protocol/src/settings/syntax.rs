//! The setting `syntax`: the tools that search and change code by its structure.

use serde::{Deserialize, Serialize};

/// The tools `ast_grep` and `ast_edit`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SyntaxSettings {
    /// Whether the tools are active in new sessions; default false, with `agentctl` and in editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How long the program `agentd-syntax` may take for one request, half a MiB of code at most, in milliseconds; default 20000. It is
    /// ended after that, and the files of the request are tried one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 20_000)))]
    pub timeout_ms: Option<std::num::NonZeroU32>,
}
