//! Settings of the commands that sessions start: the tool `bash`, their environment, their processes.

use std::num::{NonZeroU16, NonZeroU32};

use serde::{Deserialize, Serialize};

/// Features of the tool `bash` beyond its plain form. Models are told only of those that are on.
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
    /// Whether commands run with variables that keep programs from asking and paging: `PAGER=cat`, `GIT_PAGER=cat`, `GIT_EDITOR=true`,
    /// `GIT_TERMINAL_PROMPT=0`, `TERM=dumb`, `NO_COLOR=1`, `CI=true`; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub non_interactive: Option<bool>,
    /// Whether the commands of a session run in one shell that stays, so that the directory, variables, functions and aliases of one are
    /// there for the next; default false. Needs bash as the shell. A command that runs beside another one has a shell of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub session: Option<bool>,
    /// Whether functions, aliases and shell options of the user's `~/.bashrc` are there in commands: before the first command of a session, its
    /// shell is started once as an interactive one. Needs bash as the shell; default false. Counts from the user's settings alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub snapshot: Option<bool>,
    /// When a command that is waited for goes on in the background, where `async.enabled` permits that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_background: Option<AutoBackgroundSettings>,
    /// How long a command may take whose call gives no `timeout`, in milliseconds, at most 2147483647; default none. Does not concern
    /// background processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<NonZeroU32>,
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
    /// The most background processes of a session at a time; default 8.
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

/// When a command that is waited for goes on in the background.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AutoBackgroundSettings {
    /// After how many milliseconds; default 0, which is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 0)))]
    pub threshold_ms: Option<u64>,
}

/// Commands of the tool `bash` as jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AsyncSettings {
    /// Whether a command can go on beside the run, whose end the model is told (arguments `async`, `name` and `ready` of `bash`), with the
    /// tool `wait` and `proc://` in `read` and `write`; default false, for `agentctl` and in editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// The commands that are refused in favour of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Intercept {
    /// `true` for the built-in rules, `false` for none.
    BuiltIn(bool),
    /// Commands that match one of these rules, tried in order.
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
    /// The message to the model; by default, to use the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Which environment variables commands of the tool `bash` and of the user, and `ssh`, get. Names of variables, with `*` for any part of
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ChildEnvironmentSettings {
    /// What they do not get, besides the keys of model providers, which they never get unasked; default none. With `*`, only
    /// what `pass` names stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub withhold: Option<Vec<String>>,
    /// What they get all the same, and comes before `withhold`; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub pass: Option<Vec<String>>,
}

/// Limits of the processes that commands start. A command that exceeds one is killed with its descendants, and its
/// result says so. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessSettings {
    /// The most processes of all commands of a session, those in the background included; default 2048. Over
    /// it, the command with the most processes is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2048)))]
    pub max_count: Option<u64>,
    /// Their most memory together, in bytes; default no limit. Memory that maps files does not count. Over it, the
    /// command with the most memory is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
    /// The most processor time of each command with its descendants, in seconds; default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_seconds: Option<u64>,
    /// The most output of each command with its descendants, in bytes; default no limit. The result has the output
    /// up to the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
}

/// Whether a pattern, in which `*` stands for any text, matches a name.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(prefix) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    true
}
