//! Subagents: sessions that the tool `task` starts for parts of the work.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{isolation::IsolationMerge, message::Usage, number};

/// The name of the tool that starts subagents.
pub const TASK_TOOL: &str = "task";

/// The name of the tool by which a subagent hands in its result.
pub const YIELD_TOOL: &str = "yield";

/// What URLs of subagents begin with: `read` gives their results, `write` sends them messages.
pub const AGENT_URL: &str = "agent://";

/// What URLs of the work of subagents begin with.
pub const HISTORY_URL: &str = "history://";

/// The `customType` of a message of another agent to a session's model; its `details` have the sender's id as `from`.
pub const AGENT_MESSAGE: &str = "agentd.agent-message";

/// The `customType` of the entries by which a session knows its subagents: `{"subagents":[…]}`, each a [`SubagentSnapshot`]. A later one
/// with the same id takes the place of an earlier one.
pub const SUBAGENT_ENTRY: &str = "agentd.subagents";

/// The `customType` of the entry by which the session of a subagent says what it is: `{"id":…,"agent":…}`.
pub const SUBAGENT_SESSION_ENTRY: &str = "agentd.subagent-session";

/// Where a definition of an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentSource {
    /// Part of agentd.
    Bundled,
    /// A file of the user.
    User,
    /// A file of the project.
    Project,
    /// An extension, which runs it by itself.
    Extension,
}

/// The state of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentStatus {
    /// It waits for its turn: as many as may are at work.
    Pending,
    /// It is at work.
    Running,
    /// It has handed in its result.
    Completed,
    /// It ended without one.
    Failed,
    /// It was stopped.
    Aborted,
    /// The daemon ended while it was at work. It was not started again.
    Interrupted,
}

impl SubagentStatus {
    /// Whether it is at work or about to be.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// The work of a subagent so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentProgress {
    /// Answers of its model.
    pub requests: u64,
    /// Its tool calls.
    pub tool_calls: u64,
    /// The tokens of its answers, input and output.
    pub tokens: u64,
    /// Their cost in US dollars.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost: f64,
    /// The tool that it called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// Milliseconds since it began.
    pub duration_ms: u64,
}

/// A subagent of a session, as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentSnapshot {
    /// Its id: the name that its call gave it, below the ids of those that it works for, such as `Review.Tests`.
    pub id: String,
    /// Its place among the subagents of its session, from 0.
    pub index: u64,
    /// The name of its definition.
    pub agent: String,
    /// Where that comes from.
    pub agent_source: AgentSource,
    /// Its state.
    pub status: SubagentStatus,
    /// What it was asked to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its session: `attach_session` joins it, `steer` and `abort` reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The file of that session; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// When this last changed, in milliseconds since 1970.
    pub last_update: u64,
    /// Its work so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<SubagentProgress>,
    /// The call of the tool that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// Whether it works in a copy of the repository, so that it cannot go on when it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// Why it failed or was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of one subagent, in the `details` of the tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentResult {
    /// Its place in the call, from 0.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// The name of its definition.
    pub agent: String,
    /// Where that comes from.
    pub agent_source: AgentSource,
    /// What it was asked to do.
    pub task: String,
    /// 0 when it handed in a result, or gave up by itself; else 1.
    pub exit_code: u8,
    /// Its result as text: at most 500,000 bytes.
    pub output: String,
    /// What went wrong, for people; empty when nothing did.
    pub stderr: String,
    /// Whether the output was cut.
    pub truncated: bool,
    /// The time that it took, in milliseconds.
    pub duration_ms: u64,
    /// The tokens of its answers.
    pub tokens: u64,
    /// Answers of its model.
    pub requests: u64,
    /// What its answers took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it was stopped, or gave up by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// Why it was stopped or gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<String>,
    /// The model that it worked with, as `provider/id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_model: Option<String>,
    /// What it handed in, where the call or its definition has a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<StructuredOutput>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What became of its changes, where it worked in a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationMerge>,
}

/// A result that has to fit a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StructuredOutput {
    /// Whose schema it is.
    pub source: SchemaSource,
    /// What follows when it does not fit.
    pub mode: SchemaMode,
    /// Whether it fits.
    pub status: StructuredStatus,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why it does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whose schema a result has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SchemaSource {
    /// The call's (`outputSchema`).
    Call,
    /// The definition's (`output`).
    Agent,
}

/// What follows when a result does not fit its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SchemaMode {
    /// It counts all the same, after three attempts.
    #[default]
    Permissive,
    /// The subagent has failed, after three attempts.
    Strict,
}

/// Whether a result fits its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StructuredStatus {
    /// It does.
    Valid,
    /// It does not.
    Invalid,
    /// There is none.
    Unavailable,
}

/// A subagent was started, or its state changed. For clients that asked for it (`set_subagent_subscription`), and clients that count events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentLifecycle {
    /// The subagent as it is now.
    pub subagent: SubagentSnapshot,
    /// The same in the form that omp's clients read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<SubagentLifecyclePayload>>,
}

/// What omp's clients read of the beginning or the end of a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentLifecyclePayload {
    /// Its id.
    pub id: String,
    /// Its place among the subagents of its session, from 0.
    pub index: u64,
    /// The name of its definition.
    pub agent: String,
    /// Where that comes from.
    pub agent_source: AgentSource,
    /// What happened.
    pub status: SubagentMilestone,
    /// The file of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The call of the tool that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// Whether its call does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
}

/// A beginning or an end, in omp's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentMilestone {
    /// It waits for its turn, or is at work.
    Started,
    /// It has handed in its result.
    Completed,
    /// It ended without one.
    Failed,
    /// It was stopped, or the daemon ended.
    Aborted,
}

impl From<SubagentStatus> for SubagentMilestone {
    fn from(status: SubagentStatus) -> Self {
        match status {
            SubagentStatus::Pending | SubagentStatus::Running => Self::Started,
            SubagentStatus::Completed => Self::Completed,
            SubagentStatus::Failed => Self::Failed,
            SubagentStatus::Aborted | SubagentStatus::Interrupted => Self::Aborted,
        }
    }
}

impl SubagentLifecycle {
    /// The event about a subagent; `detached` is whether its call does not wait for it.
    #[must_use]
    pub fn new(subagent: SubagentSnapshot, detached: bool) -> Self {
        let payload = SubagentLifecyclePayload {
            id: subagent.id.clone(),
            index: subagent.index,
            agent: subagent.agent.clone(),
            agent_source: subagent.agent_source,
            status: subagent.status.into(),
            session_file: subagent.session_file.clone(),
            parent_tool_call_id: subagent.parent_tool_call_id.clone(),
            detached,
        };
        Self { subagent, payload: Some(Box::new(payload)) }
    }
}

/// A subagent has got on with its work; at most every 150 ms for each. For the same clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentProgressed {
    /// Its id.
    pub id: String,
    /// Its work so far.
    pub progress: SubagentProgress,
    /// The same in the form that omp's clients read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<SubagentProgressPayload>>,
}

/// What omp's clients read of the work of a subagent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentProgressPayload {
    /// Its place among the subagents of its session, from 0.
    pub index: u64,
    /// The name of its definition.
    pub agent: String,
    /// Where that comes from.
    pub agent_source: AgentSource,
    /// What it was asked to do.
    pub task: String,
    /// The call of the tool that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// The file of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Whether its call does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// Its work.
    pub progress: SubagentWork,
}

/// The work of a subagent so far, in omp's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentWork {
    /// Its place among the subagents of its session, from 0.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// The name of its definition.
    pub agent: String,
    /// Where that comes from.
    pub agent_source: AgentSource,
    /// Its state: `pending`, `running`, `completed`, `failed` or `aborted`.
    pub status: SubagentStatus,
    /// What it was asked to do.
    pub task: String,
    /// The tool that works for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_tool: Option<String>,
    /// The beginning of that tool's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_tool_args: Option<String>,
    /// The calls that ended last, the newest first; at most five.
    pub recent_tools: Vec<SubagentToolCall>,
    /// The last lines that it said; at most five.
    pub recent_output: Vec<String>,
    /// Its tool calls.
    pub tool_count: u64,
    /// Answers of its model.
    pub requests: u64,
    /// The tokens of its answers, input and output.
    pub tokens: u64,
    /// Their cost in US dollars.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost: f64,
    /// Milliseconds since it began.
    pub duration_ms: u64,
    /// The model that answers, as `provider/id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_model: Option<String>,
}

/// A tool call of a subagent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentToolCall {
    /// The tool.
    pub tool: String,
    /// The beginning of its arguments.
    pub args: String,
    /// When it ended, in milliseconds since 1970.
    pub end_ms: u64,
}

/// An event of the session of a subagent. For clients that asked for `events`. It is no event of the session that it is told in: it has no
/// `seq`. A client that does not keep up misses some, and then gets an event `lagged`, whose `fromSeq` is the first that it missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentEvent {
    /// Whose event it is, and the event.
    pub payload: SubagentEventPayload,
    /// The session that the subagent works for.
    pub session_id: String,
}

/// An event of a subagent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentEventPayload {
    /// The subagent's id.
    pub id: String,
    /// The event, as clients of its session get it.
    pub event: Value,
}

/// The fields of `apply_patch` and `discard_patch`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentPatchParams {
    /// The subagent's id.
    pub subagent_id: String,
}

/// Which events about subagents a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentSubscription {
    /// None.
    #[default]
    Off,
    /// `subagent_lifecycle` and `subagent_progress`.
    Progress,
    /// These, and all events of their sessions as `subagent_event`.
    Events,
}

/// The fields of `set_subagent_subscription`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetSubagentSubscriptionParams {
    /// Which events this connection gets from now on; `level` in the words of omp's clients.
    #[serde(alias = "level")]
    pub subscription: SubagentSubscription,
}

/// The answer to `set_subagent_subscription`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentSubscriptionSet {
    /// Which events this connection gets.
    pub level: SubagentSubscription,
}

/// The answer to `get_subagents`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentList {
    /// The session's subagents, in the order in which they were started; those of subagents are in the lists of their sessions.
    pub subagents: Vec<SubagentSnapshot>,
}

/// The fields of `get_subagent_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetSubagentMessagesParams {
    /// The subagent's id, or the id of its session.
    pub subagent_id: String,
    /// Where to read on in its file, in bytes: `nextByte` of the answer before; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_byte: Option<u64>,
}

/// The answer to `get_subagent_messages`: at most 1 MiB of the file, in whole lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentMessages {
    /// The file.
    pub session_file: String,
    /// Where `entries` begin.
    pub from_byte: u64,
    /// Where the next ones will.
    pub next_byte: u64,
    /// Whether the file was shorter than `fromByte`, so that this begins at its beginning.
    pub reset: bool,
    /// The entries of the file, as it has them.
    pub entries: Vec<Value>,
    /// The messages among them.
    pub messages: Vec<Value>,
}
