//! The state of a session.

use serde::{Deserialize, Serialize};

use crate::{
    budget::BudgetState,
    model::{Model, ModelName, ThinkingLevel},
    number,
    settings::{PermissionPreset, PermissionRule, TimeoutDecision},
};

/// The number of queued messages that are delivered at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// All of them.
    All,
    /// One.
    #[default]
    OneAtATime,
}

/// The effect of a steering message on running tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InterruptMode {
    /// It stops them, as `abort` with the scope `tools` does.
    Immediate,
    /// It waits for their end.
    #[default]
    Wait,
}

impl InterruptMode {
    fn is_wait(&self) -> bool {
        *self == Self::Wait
    }
}

/// The answer to `get_state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The model; with none configured, a placeholder of provider and id `unknown`.
    pub model: Model,
    /// The thinking level.
    pub thinking_level: ThinkingLevel,
    /// True from the acceptance of a prompt until `agent_settled`.
    pub is_streaming: bool,
    /// Whether a compaction is at work.
    pub is_compacting: bool,
    /// The delivery of steering messages.
    pub steering_mode: QueueMode,
    /// The delivery of follow-up messages.
    pub follow_up_mode: QueueMode,
    /// The effect of a steering message on running tool calls; absent for `wait`.
    #[serde(default, skip_serializing_if = "InterruptMode::is_wait")]
    pub interrupt_mode: InterruptMode,
    /// The models that are asked when the chosen one fails, as they were named; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_models: Vec<String>,
    /// The model that works in the place of the chosen one, until the session settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<ModelName>,
    /// The session file, which appears with the first message; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The session's id.
    pub session_id: String,
    /// The session's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// The folder that the session works in. Only in answers to clients that said `hello`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether the context is compacted on its own when it grows too large.
    pub auto_compaction_enabled: bool,
    /// Messages in the context.
    pub message_count: u64,
    /// Queued steering and follow-up messages.
    pub pending_message_count: u64,
    /// The same as `pendingMessageCount`, by the name that omp's clients know. This and the five fields below are only in answers to
    /// `get_state` of clients that said `hello`, or were started with `--ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_message_count: Option<u64>,
    /// Whether nothing will wake the session any more: no run and no compaction is active, no message waits, and `hasPendingAsyncWork`
    /// is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_settled: Option<bool>,
    /// Whether something is under way that can begin a run without a further command: a command of an extension, a message that waits
    /// for the prompt of an MCP server, the start of extensions, the question whether an interrupted turn goes on, a job whose end
    /// wakes the session (setting `task.wakeUp`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_pending_async_work: Option<bool>,
    /// The ids of the tool calls that have begun and not ended, in the order in which they began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_tool_calls: Option<Vec<String>>,
    /// Whether an answer streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_streaming_message: Option<bool>,
    /// The permissions; absent where everything is allowed. Only in answers to clients that said `hello`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionState>,
    /// The error of the last answer; absent if it did not fail and was not aborted, and once a message of the user
    /// follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The budgets that limit the session's work, and what is spent; only in answers to clients that said `hello`, and absent
    /// where nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<BudgetState>,
    /// Present and true where the project has something that needs trust, such as settings or hooks of its own, and is not trusted, so that
    /// it is not used. Only in answers to clients that said `hello`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_untrusted: Option<bool>,
    /// What the sandbox enforces; absent without one. Only in answers to clients that said `hello`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<crate::sandbox::SandboxState>,
    /// How changes of tool calls are kept; absent where undo is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<crate::checkpoints::UndoState>,
    /// The mode of the session; absent for `default`.
    #[serde(default, skip_serializing_if = "crate::agent_mode::AgentMode::is_default")]
    pub mode: crate::agent_mode::AgentMode,
    /// The list of tasks that the tool `todo` keeps; absent while it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo_phases: Vec<crate::todo::TodoPhase>,
}

/// The permissions of a session that has some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionState {
    /// The verdict where no rule matches; the stricter of the user's and the project's.
    pub preset: PermissionPreset,
    /// The time that a question waits, in milliseconds.
    pub ask_timeout_ms: u64,
    /// The decision when nobody answers.
    pub on_timeout: TimeoutDecision,
    /// The number of rules of all sources.
    pub rules: u64,
    /// The rules of the session itself: by `set_permissions`, and by answers.
    pub session_rules: Vec<PermissionRule>,
}

/// The answer to `get_session_stats`: counts over all entries of the session, of every branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// The session file; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The session's id.
    pub session_id: String,
    /// User messages.
    pub user_messages: u64,
    /// Answers.
    pub assistant_messages: u64,
    /// Tool calls in the answers.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Messages of every role.
    pub total_messages: u64,
    /// Tokens spent.
    pub tokens: TokenStats,
    /// US dollars spent.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost: f64,
    /// The use of the context window; absent when the window is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Sums of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenStats {
    /// Input that was not cached.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from caches.
    pub cache_read: u64,
    /// Input written to caches.
    pub cache_write: u64,
    /// The sum of the four.
    pub total: u64,
}

/// The use of the context window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens in the context; `null` right after a compaction, until an answer reports them.
    pub tokens: Option<u64>,
    /// The window in tokens.
    pub context_window: u64,
    /// From 0 to 100, not rounded; `null` with `tokens`.
    #[serde(serialize_with = "optional_number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub percent: Option<f64>,
}

fn optional_number<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number::serialize(value, serializer),
        None => serializer.serialize_none(),
    }
}
