//! The setting `shellHooks`: which shell hooks run.

use serde::{Deserialize, Serialize};

/// Which shell hooks run. What they are stands in `hooks` and in files. Only read from the user's settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ShellHookSettings {
    /// Whether any shell hook runs; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// Whether the hooks of `.claude/settings.json` and `.claude/settings.local.json` of a trusted project run; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub claude_project: Option<bool>,
    /// Whether the hooks of `~/.claude/settings.json` run; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub claude_user: Option<bool>,
    /// Whether the user's own hooks run in the sandbox of a session that has one; default true. Those of a project always do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub sandboxed: Option<bool>,
    /// The seconds after which a hook is killed that names no `timeout` of its own; default 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60.0)))]
    pub timeout_seconds: Option<f64>,
}
