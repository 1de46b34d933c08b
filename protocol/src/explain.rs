//! `explain_setting`: where a setting's value comes from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields of `explain_setting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainSettingParams {
    /// The key as in `settings.json`, members of objects after a dot: `compaction.enabled`.
    pub key: String,
}

/// The source of a setting's value, as the files are now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingExplanation {
    /// The key that was asked for.
    pub key: String,
    /// The setting's purpose. Absent for a key that agentd does not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value that counts; absent where nothing is set and there is no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The source of that value. For an object or a list to which several files add: the strongest of them.
    pub source: SettingSource,
    /// The file that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The session's value, if it differs: the session read the files before they were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_session: Option<Value>,
    /// Everyone who could say something, the strongest first.
    pub layers: Vec<SettingLayer>,
}

/// A setting's value in one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingLayer {
    /// The source.
    pub source: SettingSource,
    /// The flag or the variable, such as `--thinking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in it, from 1, if it says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The value as it stands there; absent if the source has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether it has a part in the value that counts.
    pub counts: bool,
    /// Why not, or how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SettingSource {
    /// Nothing is set.
    Default,
    /// The user's `settings.json`.
    User,
    /// The project's `settings.json`.
    Project,
    /// A variable of the environment.
    Environment,
    /// A flag of the command line, or an argument of `open_session`.
    Flag,
}
