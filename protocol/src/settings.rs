//! `settings.json`: what users configure. Unknown keys are kept.

mod bash;
mod child_environment;
mod limits;
mod patterns;
mod storage;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    model::ThinkingLevel,
    session::{InterruptMode, QueueMode},
    tool_list::ToolExecution,
};

pub use bash::{BashSettings, Intercept, InterceptRule};
pub use child_environment::ChildEnvironmentSettings;
pub use limits::LimitSettings;
pub use patterns::matches_pattern;
pub use storage::StorageSettings;

/// The settings that this version of agentd reads. Every key is optional; a key of another product is ignored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The provider of the model to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_provider: Option<String>,
    /// The model to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// The thinking level to start with; default `medium`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "medium")))]
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Thinking levels by `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_thinking_levels: Option<BTreeMap<String, ThinkingLevel>>,
    /// The models that `cycle_model` goes through (as `--models`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_models: Option<Vec<String>>,
    /// The models that are asked, one after the other, when the chosen one fails for good (as `--fallback-models`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub fallback_models: Option<Vec<String>>,
    /// How steering messages are delivered; default `one-at-a-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "one-at-a-time")))]
    pub steering_mode: Option<QueueMode>,
    /// How follow-up messages are delivered; default `one-at-a-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "one-at-a-time")))]
    pub follow_up_mode: Option<QueueMode>,
    /// What a steering message does to tool calls that run: `wait` (the default) for their end, or stop them at once
    /// (`immediate`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "wait")))]
    pub interrupt_mode: Option<InterruptMode>,
    /// How the tool calls of one answer run: side by side (`parallel`, the default), or each when the one before it has ended
    /// (`sequential`). A tool that says `sequential` of itself makes its batch so in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "parallel")))]
    pub tool_execution: Option<ToolExecution>,
    /// The tools that are active by default; `+name` and `-name` change the built-in choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["read", "bash", "edit", "write"])))]
    pub default_tools: Option<Vec<String>>,
    /// Tools that sessions do not have: names, with `*` for any part of one. Nobody can activate or provide such a tool (as
    /// `--exclude-tools`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub exclude_tools: Option<Vec<String>>,
    /// Tools that clients provide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<ClientToolSettings>,
    /// Whether a project's own settings and prompts are used where nothing else says so; default `ask`. Only read from
    /// the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "ask")))]
    pub default_project_trust: Option<ProjectTrust>,
    /// Skills besides those of the usual folders: files or folders, relative to the folder of this file. `!glob` takes some
    /// out, `-path` exactly one, and `+path` one in again. Those of the user and of the project both count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub skills: Option<Vec<String>>,
    /// Prompt templates, as `skills`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub prompts: Option<Vec<String>>,
    /// Whether `get_commands` lists skills; default true. `/skill:name` works either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enable_skill_commands: Option<bool>,
    /// The shell that runs commands; default `/bin/bash`, else `bash` or `sh` on the search path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_path: Option<String>,
    /// A line put before every shell command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_command_prefix: Option<String>,
    /// What the processes of a session's commands may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessSettings>,
    /// Which environment variables the programs get that a session starts. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_environment: Option<ChildEnvironmentSettings>,
    /// What the tools `write` and `edit` may write in the agent directory, which they leave alone else: paths relative to it, with
    /// `*` for any part of one, such as `skills/*`. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub agent_dir_writable: Option<Vec<String>>,
    /// What the tool `bash` offers beyond its plain form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bash: Option<BashSettings>,
    /// The folder of session files; default `sessions/` in the agent directory, a folder for each working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_dir: Option<String>,
    /// Images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageSettings>,
    /// Compaction of long contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionSettings>,
    /// Summaries of branches that the conversation leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_summary: Option<BranchSummarySettings>,
    /// What happens when a request fails for a reason that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySettings>,
    /// Tokens that each thinking level may use, where a provider takes a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budgets: Option<ThinkingBudgetSettings>,
    /// How long a provider may be silent, in milliseconds; 0 or `"disabled"` for no limit; default 300000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 300_000)))]
    pub http_idle_timeout_ms: Option<Value>,
    /// How long a provider may take, phase by phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<DeadlineSettings>,
    /// The proxy of requests to providers, such as `http://proxy.example:3128`, where the environment names none. Only read
    /// from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// A file with certificates (PEM) that are trusted beside the system's; `~` is the home directory, and what is relative
    /// counts from the agent directory. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Whether an entry survives a kill of the daemon (`os`, the default) or a power loss (`fsync`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "os")))]
    pub durability: Option<Durability>,
    /// What becomes of a turn that a crash of the daemon interrupted, once its session is opened again: it is over (`close`, the
    /// default), the user is asked (`ask`), or it goes on by itself (`resume`). No tool is run again in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "close")))]
    pub crash_recovery: Option<CrashRecovery>,
    /// The daemon itself. Only read from the user's settings, at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon: Option<DaemonSettings>,
    /// What one session may take. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitSettings>,
    /// What long outputs may take of the disk. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSettings>,
}

/// Settings of tools that clients provide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClientToolSettings {
    /// How long a client may take for a call, in milliseconds, where its tool does not say; 0 for no limit. Default 600000
    /// (10 minutes).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 600_000)))]
    pub timeout_ms: Option<u64>,
    /// The longest `tool_response` or `tool_progress` that is taken, in bytes of its line. Default 8388608 (8 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 8_388_608)))]
    pub max_result_bytes: Option<u64>,
}

/// Settings of the daemon, for all its sessions and clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSettings {
    /// How long a session stays in memory with nothing to do, in milliseconds; the next command brings it back. 0: for
    /// ever; default 600000 (10 minutes). A private daemon (`agentd --stdio`) keeps its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 600_000)))]
    pub idle_unload_ms: Option<u64>,
    /// How long work has to finish when the daemon ends, in milliseconds; then it is stopped. Default 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 30_000)))]
    pub shutdown_deadline_ms: Option<u64>,
    /// How much waits for a client that reads too slowly, in bytes for each session that it follows; beyond that the
    /// session waits for the client, or cuts it off if it is not the only one. Default 1048576.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_048_576)))]
    pub outbox_bytes: Option<u64>,
    /// How long a full outbox is waited for before the client is cut off, in milliseconds; default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1000)))]
    pub lag_grace_ms: Option<u64>,
    /// How much of a session's last events is kept for clients that come back, in bytes; default 262144.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 262_144)))]
    pub replay_bytes: Option<u64>,
    /// The longest line that a client may send, in bytes; default 67108864 (64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 67_108_864)))]
    pub max_line_bytes: Option<u64>,
    /// How long a client of the socket may pause in a line that it has begun, in milliseconds; then the line is given up, and
    /// the client told. 0 for no limit; default 60000. A private daemon (`agentd --stdio`) has no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub line_idle_ms: Option<u64>,
    /// How long a question to the user that sets no limit itself waits while no client is there that could answer, in
    /// milliseconds; then its default is taken. Default 600000 (10 minutes).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 600_000)))]
    pub ui_timeout_ms: Option<u64>,
    /// How many clients there can be at the same time; the next one is told so and left. Default 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 512)))]
    pub max_clients: Option<u64>,
    /// How many sessions the daemon knows at the same time, in memory or not. To make room for another, those that nobody
    /// follows and that left memory longest ago are known no more; a command that names one brings it back from its file.
    /// 0 for no limit; default 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10_000)))]
    pub max_sessions: Option<u64>,
    /// How many sessions one client can follow at the same time; 0 for no limit, default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1000)))]
    pub max_followed_sessions: Option<u64>,
    /// How many commands about the daemon and the set-up (`list_sessions`, `login_finish`, `close_session` and the like) one
    /// client can have under way; 0 for no limit, default 64. Commands to sessions wait in order instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 64)))]
    pub max_pending_commands: Option<u64>,
    /// How much memory the daemon may use, in bytes, children not counted. Above it, sessions with nothing to do leave memory at
    /// once, those first that were used longest ago; while that is not enough, no session is opened and no message taken. An eighth of
    /// it each is for lines that clients are sending, commands that wait, answers that run, and messages that wait. 0
    /// for no limit; default 2147483648 (2 GiB), and at most a quarter of the machine's memory. A private daemon
    /// (`agentd --stdio`) has no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2_147_483_648_u64)))]
    pub max_memory_bytes: Option<u64>,
    /// How many commands of all sessions can run at the same time, those in the background included; what a command itself starts
    /// is not counted here (`processes.maxCount` does). 0 for no limit; default 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1024)))]
    pub max_commands: Option<u64>,
}

/// Whether a project's own settings and prompts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectTrust {
    /// The user is asked; where nobody can be asked, they are not used.
    #[default]
    Ask,
    /// They are.
    Always,
    /// They are not.
    Never,
}

/// Settings of images.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSettings {
    /// Whether images of prompts and tools are made smaller where they are larger than 2000 by 2000 pixels or 4.5 MiB of
    /// base64, and checked before a model gets them; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub auto_resize: Option<bool>,
    /// Whether images are kept from the model; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub block_images: Option<bool>,
}

/// Limits of the processes that commands start. A command that goes over one is killed with all that it started, and its
/// result says so. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessSettings {
    /// How many processes all commands of a session may have together, those in the background included; default 2048. Over
    /// it, the command with the most of them goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2048)))]
    pub max_count: Option<u64>,
    /// How much memory they may have together, in bytes; default no limit. What mirrors files does not count. Over it, the
    /// command with the most of it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
    /// How much processor time each command may use, with all that it starts, in seconds; default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_seconds: Option<u64>,
    /// How much each command may write, with all that it starts, in bytes; default no limit. The result has what was written
    /// until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
}

/// Settings of compaction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    /// Whether long contexts are compacted by themselves; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// Tokens of the context window that are kept free: a context that leaves less is compacted. Default 16384, and at most
    /// half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub reserve_tokens: Option<u64>,
    /// Tokens at the end of the context, about, that a compaction leaves as they are. Default 20000, and at most half of
    /// what is not kept free.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 20_000)))]
    pub keep_recent_tokens: Option<u64>,
    /// Other values for single models, by `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_overrides: Option<BTreeMap<String, CompactionOverride>>,
}

/// Settings of compaction for one model; what is not there is as for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionOverride {
    /// In the place of `compaction.enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// In the place of `compaction.reserveTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_tokens: Option<u64>,
    /// In the place of `compaction.keepRecentTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_recent_tokens: Option<u64>,
}

/// Settings of summaries of branches that the conversation leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    /// Tokens of the context window that are kept free when a branch is summarised: what is older than fits is left out.
    /// Default 16384, and at most half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub reserve_tokens: Option<u64>,
    /// Whether clients that ask before a summary is made do not ask; default false. The daemon itself never asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub skip_prompt: Option<bool>,
}

/// Settings of retries: a failed answer is left out of the context, and the model is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    /// Whether there are any; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// How often a model is asked again in a row; default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 3)))]
    pub max_retries: Option<u32>,
    /// The pause before the first retry in milliseconds; it doubles with each; default 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2000)))]
    pub base_delay_ms: Option<u64>,
    /// The longest pause in milliseconds; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub max_agent_delay_ms: Option<u64>,
    /// Repetitions of a single HTTP request, below the retries above and unseen by clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderRetrySettings>,
}

/// Settings of repetitions of an HTTP request. Only what failed before its answer began is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRetrySettings {
    /// How long a provider may take until its answer begins, in milliseconds; default `httpIdleTimeoutMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often a request is sent again; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 0)))]
    pub max_retries: Option<u32>,
    /// The longest pause that a provider may ask for, in milliseconds; a longer one fails the request for good. 0 for no
    /// limit; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub max_retry_delay_ms: Option<u64>,
}

/// Settings of how long a provider may take. Only the time counts in which it is waited for. Clients that said `hello` hear of
/// a limit that was reached by `provider_stalled`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DeadlineSettings {
    /// Until a connection stands; default 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 30_000)))]
    pub connect_ms: Option<TimeLimit>,
    /// Until the first byte of an answer, counted from the sending of the request; default none (`httpIdleTimeoutMs` counts
    /// there, too).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "disabled")))]
    pub first_byte_ms: Option<TimeLimit>,
    /// Between two pieces of content. What only keeps the connection alive (comments, pings, empty pieces) is none, other
    /// than for `httpIdleTimeoutMs`. Default 1800000 (30 minutes), and none for servers on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_800_000)))]
    pub progress_ms: Option<TimeLimit>,
    /// For a whole request, to the end of its answer; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "disabled")))]
    pub request_ms: Option<TimeLimit>,
    /// What a limit that is reached means, `httpIdleTimeoutMs` included: `retry` (the default) makes it a failure that may
    /// pass, so that the model is asked again as `retry` says; `fail` one for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "retry")))]
    pub on_stall: Option<StallPolicy>,
}

/// What a provider that takes too long means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StallPolicy {
    /// The model is asked again.
    Retry,
    /// The answer fails.
    Fail,
}

/// A limit in milliseconds; 0 or `"disabled"` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// This many milliseconds.
    Millis(u64),
    /// None.
    Disabled,
}

impl TimeLimit {
    /// The limit, if there is one.
    #[must_use]
    pub fn duration(self) -> Option<std::time::Duration> {
        match self {
            Self::Millis(millis) => Some(std::time::Duration::from_millis(millis)),
            Self::Disabled => None,
        }
    }
}

impl Serialize for TimeLimit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Millis(millis) => serializer.serialize_u64(*millis),
            Self::Disabled => serializer.serialize_str("disabled"),
        }
    }
}

impl<'de> Deserialize<'de> for TimeLimit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong =
            || serde::de::Error::custom("expected a number of milliseconds, 0 or more, or \"disabled\"");
        match Value::deserialize(deserializer)? {
            Value::Number(number) => {
                let millis = number.as_f64().filter(|millis| *millis >= 0.0).ok_or_else(wrong)?;
                // A fraction of a millisecond is a limit all the same, and a float that is too large the largest limit.
                let millis = millis.ceil() as u64;
                Ok(if millis == 0 { Self::Disabled } else { Self::Millis(millis) })
            }
            Value::String(text) if text == "disabled" => Ok(Self::Disabled),
            _ => Err(wrong()),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeLimit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeLimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A limit in milliseconds; 0 or `\"disabled\"` for none.",
            "anyOf": [{ "type": "number", "minimum": 0 }, { "const": "disabled" }]
        })
    }
}

/// Tokens that each thinking level may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThinkingBudgetSettings {
    /// For `minimal`; default 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1024)))]
    pub minimal: Option<u64>,
    /// For `low`; default 2048.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2048)))]
    pub low: Option<u64>,
    /// For `medium`; default 8192.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 8192)))]
    pub medium: Option<u64>,
    /// For `high` and above; default 16384.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub high: Option<u64>,
}

/// What becomes of a turn that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CrashRecovery {
    /// It is over.
    #[default]
    Close,
    /// The user is asked; without an answer it is over.
    Ask,
    /// The model is asked again, at most twice.
    Resume,
}

/// What a saved entry survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A kill of the daemon.
    #[default]
    Os,
    /// A power loss.
    Fsync,
}
