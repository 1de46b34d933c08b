//! The setting `discovery`: which files of other tools count.

use serde::{Deserialize, Serialize};

/// What is read of the files of other tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoverySettings {
    /// Whether a project's files of other tools (`.claude`, `.cursor`, `GEMINI.md` and the like) count; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub foreign: Option<bool>,
    /// The providers whose files of the user count, too, such as `claude` for `~/.claude`; `*` for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub enabled_providers: Option<Vec<String>>,
    /// Providers none of whose files count, such as `cursor`; `codex:user` and `codex:project` are its files of one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub disabled_providers: Option<Vec<String>>,
    /// Items that do not count, by their ids, such as `rule:testing`; `*` stands for any part of one. `set_capability` changes this list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub disabled_items: Option<Vec<String>>,
    /// The only skills that count, by their names; `*` stands for any part of one. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub include_skills: Option<Vec<String>>,
}
