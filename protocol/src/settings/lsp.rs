//! The setting `lsp`: language servers.

use serde::{Deserialize, Serialize};

/// Language servers: the tool `lsp`, and diagnostics in the results of edits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LspSettings {
    /// Whether new sessions have language servers and the tool `lsp`; default false, for `agentctl` and in editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Which diagnostics the results of `edit` and `write` have; default `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics_on_edit: Option<LspDiagnosticsOnEdit>,
    /// How long the result of an edit waits for diagnostics, in milliseconds; default 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics_wait_ms: Option<u64>,
    /// Bytes of memory of one language server with all that it starts; default 6000000000, 0 for no limit. One that exceeds it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
    /// How long a language server may take to begin, in milliseconds; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
    /// Whether renames and code actions may change files outside of the working folder; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits_outside: Option<bool>,
}

/// Which diagnostics the results of edits have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LspDiagnosticsOnEdit {
    /// None.
    Off,
    /// Those of language servers that run already.
    Warm,
    /// The same, and the first file of a language that is read or changed starts its server in the background.
    Start,
}
