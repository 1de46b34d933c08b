//! What the tool `bash` offers beyond its plain form.

use std::num::{NonZeroU16, NonZeroU32};

use serde::{Deserialize, Serialize};

/// What the tool `bash` offers beyond its plain form; models are told of nothing that is not on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct BashSettings {
    /// Whether commands can be run on a terminal (argument `pty`); default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub pty: Option<bool>,
    /// Whether commands can be run in the background (argument `background`), with the tools `process_list`,
    /// `process_output`, `process_input` and `process_kill`; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub background: Option<bool>,
    /// Whether a command can name the folder that it runs in (argument `cwd`); default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub cwd: Option<bool>,
    /// Whether a command can be given environment variables (argument `env`); default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub env: Option<bool>,
    /// Which commands are refused in favour of another tool: `true` for the built-in rules, or rules of one's own; default
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub intercept: Option<Intercept>,
    /// Lines of the terminal of a command that says nothing else; default 24.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 24)))]
    pub rows: Option<NonZeroU16>,
    /// Columns of the terminal of a command that says nothing else; default 80.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 80)))]
    pub cols: Option<NonZeroU16>,
    /// How many background processes of a session may run at a time; default 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 8)))]
    pub max_background: Option<NonZeroU32>,
    /// How much of the output of a background process is kept in memory, in bytes: its end, at least so much and at most
    /// twice as much. Default 131072 (128 KiB), and at most 16777216 (16 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 131_072)))]
    pub keep_bytes: Option<u64>,
    /// How much of the output of a background process goes to a temporary file once it is longer than that, in bytes from
    /// its beginning; default 67108864 (64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 67_108_864)))]
    pub file_bytes: Option<u64>,
}

/// Which commands are refused in favour of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Intercept {
    /// Those of the built-in rules, or none.
    BuiltIn(bool),
    /// Those that one of these rules fits, tried in order.
    Rules(Vec<InterceptRule>),
}

/// A rule that refuses commands in favour of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InterceptRule {
    /// A regular expression (the syntax of Rust's `regex`); it fits where it is found anywhere in the command.
    pub pattern: String,
    /// The tool to use. The rule counts only while that is active; without one it always counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the model is told; by default, to use the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
