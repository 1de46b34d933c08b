//! Events of a session around its runs: queues, retries, compaction, entries, stalls, fallbacks, processes; and of the daemon.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Json,
    checkpoints::Checkpoint,
    compaction::{CompactionReason, CompactionResult},
    entry::SessionEntry,
    model::{ModelName, ThinkingLevel},
    settings::PermissionRule,
};

/// A decision about a call that was not simply allowed: it was refused, or the user was asked. Only in sessions with permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecision {
    /// The tool call; absent for a command of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The decision.
    pub decision: PermissionVerdict,
    /// Who decided.
    pub by: DecisionMaker,
    /// The client whose user answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Why the call was refused or asked about.
    pub reason: String,
    /// Where the rule comes from that asked or refused: `user`, `project`, `flags` or `session`; absent where the preset did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// That rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<PermissionRule>,
    /// The rule that the answer gave the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_rule: Option<PermissionRule>,
    /// The time that the question waited, in milliseconds.
    pub waited_ms: u64,
}

/// Whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PermissionVerdict {
    /// It runs.
    Allowed,
    /// It does not run.
    Denied,
}

/// Who decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecisionMaker {
    /// A rule or the preset.
    Policy,
    /// The user.
    User,
    /// The time limit of the question: `permissions.onTimeout`.
    Timeout,
    /// The same, since nobody was there to be asked.
    Nobody,
}

/// The queues of waiting messages, complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueUpdate {
    /// Steering messages, oldest first.
    pub steering: Vec<String>,
    /// Follow-up messages, oldest first.
    pub follow_up: Vec<String>,
}

/// A failed answer is retried after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AutoRetryStart {
    /// The number of this retry, counted from 1.
    pub attempt: u32,
    /// The most retries.
    pub max_attempts: u32,
    /// The pause in milliseconds.
    pub delay_ms: u64,
    /// The `errorMessage` of the failed answer.
    pub error_message: String,
}

/// The retries ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AutoRetryEnd {
    /// Whether a retry was answered.
    pub success: bool,
    /// The number of retries.
    pub attempt: u32,
    /// The reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_error: Option<String>,
}

/// A tool call, or a restoring, changed files; the entry is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointCreated {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
}

/// The older part of the context is being summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionStart {
    /// Why.
    pub reason: CompactionReason,
}

/// A compaction ended: with `result`, `aborted`, or `errorMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionEnd {
    /// The reason for it.
    pub reason: CompactionReason,
    /// Its result; the entry is on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// Whether it was stopped. Nothing has changed then.
    pub aborted: bool,
    /// Whether the answer that failed because of the long context is retried.
    pub will_retry: bool,
    /// The reason why it failed. Nothing has changed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// A summary is retried after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SummarizationRetryScheduled {
    /// The number of this retry, counted from 1.
    pub attempt: u32,
    /// The most retries.
    pub max_attempts: u32,
    /// The pause in milliseconds.
    pub delay_ms: u64,
    /// The reason why there is no summary yet.
    pub error_message: String,
}

/// A summary is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "camelCase")]
pub enum SummarizationRetryAttemptStart {
    /// For a compaction.
    Compaction {
        /// The reason for the compaction.
        reason: CompactionReason,
    },
    /// For a branch that the conversation leaves.
    BranchSummary,
}

/// The retries of a summary ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummarizationRetryFinished {}

/// An entry other than a message was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryAppended {
    /// The entry, as in the session file.
    pub entry: Json<SessionEntry>,
}

/// The session's name changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfoChanged {
    /// The new name; absent when it was cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The thinking level changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingLevelChanged {
    /// The new level.
    pub level: ThinkingLevel,
}

/// A `bash` command printed something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BashExecutionUpdate {
    /// The id of the `bash` command, as the client gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The added output, without terminal codes.
    pub delta: String,
}

/// A provider took longer than a limit allows. Sent before the daemon reacts to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderStalled {
    /// The phase of the request that took too long.
    pub phase: StallPhase,
    /// The provider.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The time waited, in milliseconds.
    pub waited_ms: u64,
    /// The limit, in milliseconds.
    pub limit_ms: u64,
    /// The reaction.
    pub action: StallAction,
}

/// A phase of a request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StallPhase {
    /// A connection (setting `deadlines.connectMs`).
    Connect,
    /// The beginning of an answer (`deadlines.firstByteMs`, `retry.provider.timeoutMs`).
    FirstByte,
    /// Any byte (`httpIdleTimeoutMs`).
    Idle,
    /// Content (`deadlines.progressMs`).
    Progress,
    /// The end of the answer (`deadlines.requestMs`).
    Request,
}

/// The reaction to a provider that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StallAction {
    /// The request is sent again: at once (setting `retry.provider`), or after the failed answer and a pause
    /// (`auto_retry_start`).
    Retry,
    /// The answer fails.
    Fail,
}

/// Another model replaces one whose answer failed, until the session settles: the next prompt begins with the chosen
/// model again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelFallback {
    /// The model that failed, or is not asked now.
    pub from: ModelName,
    /// The model that replaces it.
    pub to: ModelName,
    /// The thinking level that goes with it.
    pub thinking_level: ThinkingLevel,
    /// The purpose of the request.
    pub purpose: FallbackPurpose,
    /// Why.
    pub reason: FallbackReason,
    /// The `errorMessage` of the answer that failed.
    pub error_message: String,
}

/// The purpose of a request to a fallback model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackPurpose {
    /// The answer, and what follows until the session settles.
    Answer,
    /// One summary of a compaction or of a branch.
    Summary,
}

/// The reason why another model replaces one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// It cannot be used: there is no key for it, or agentd does not support its API.
    NoCredentials,
    /// The provider refused the key.
    Auth,
    /// A limit of the account: no quota, no credit. The model is not used for some minutes.
    AccountLimit,
    /// The provider refused the request: an unknown model, an unsupported field.
    Refused,
    /// The model refused to answer.
    ModelRefused,
    /// The provider did not answer, or could not, and the retries are used up.
    Unavailable,
    /// The conversation is too long for the model, and the other one has a larger context window.
    ContextOverflow,
    /// Anything else.
    Failed,
}

/// A background process of the tool `bash` ended, with everything that it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessEnd {
    /// Its name in the session: `bg-1`, …
    pub process_id: String,
    /// The command.
    pub command: String,
    /// The exit code of its shell; 128 + n when signal n ended it.
    pub exit_code: i32,
    /// The signal that ended its shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The cause of its end; absent when it ended by itself, or with its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<ProcessEndedBy>,
    /// Its running time in milliseconds.
    pub duration_ms: u64,
    /// The length of its output in bytes.
    pub output_bytes: u64,
}

/// The cause of a background process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProcessEndedBy {
    /// Its time limit.
    Timeout,
    /// The model, by `process_kill` or `proc://`.
    Model,
    /// The user, by `kill_job`.
    User,
    /// Another service of its name, which took its place.
    Restart,
    /// A limit of the session's processes (setting `processes`).
    Limit,
}

/// An extension failed, or its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionError {
    /// The extension; `command:NAME` for a command of one, `<runtime>` for what it asked of the session, `<host>` for the process that runs it.
    pub extension_path: String,
    /// The event whose handler failed, or what else was going on.
    pub event: String,
    /// What was the matter.
    pub error: String,
}
