//! The event table: what the daemon tells without being asked.
//!
//! An event is one JSON object with a `type`. Fields that only some connections want (`sessionId`, `seq`) are not part
//! of an event: the connection adds them to the finished line.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    Json,
    client_tools::{ToolCancel, ToolRequest},
    compaction::{CompactionReason, CompactionResult},
    daemon::{Lagged, SessionChanged, SessionClosed, SessionOpened},
    entry::SessionEntry,
    message::{AssistantMessage, Message, StopReason, ToolCall, Usage},
    model::{ModelName, ThinkingLevel},
    tool::ToolResult,
    tool_list::ToolsChanged,
    ui::{ExtensionUiRequest, UiRequestResolved},
};

macro_rules! events {
    ($($(#[doc = $doc:literal])* $name:ident = $wire:literal),* $(,)?) => {
        /// An event of a session.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($(#[doc = $doc])* $name($name),)*
        }

        impl Event {
            /// The names of all events.
            pub const NAMES: &[&str] = &[$($wire),*];

            /// The `type` on the wire.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => $wire,)* }
            }

            /// Reads the event of that `type` from its whole line; `None` for a type that this version does not know.
            ///
            /// # Errors
            /// Fails when the line does not have the fields of its type.
            pub fn parse(name: &str, line: &str) -> Option<Result<Self, serde_json::Error>> {
                match name {
                    $($wire => Some(serde_json::from_str(line).map(Self::$name)),)*
                    _ => None,
                }
            }

            #[cfg(feature = "schema")]
            pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<crate::schema::rows::EventRow> {
                vec![$(crate::schema::rows::EventRow {
                    name: $wire,
                    doc: concat!($($doc),*).trim(),
                    body: generator.subschema_for::<$name>(),
                },)*]
            }
        }

        impl Serialize for Event {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                struct Tagged<'a, T> {
                    #[serde(rename = "type")]
                    name: &'static str,
                    #[serde(flatten)]
                    body: &'a T,
                }
                match self {
                    $(Self::$name(body) => Tagged { name: $wire, body }.serialize(serializer),)*
                }
            }
        }

        $(impl From<$name> for Event {
            fn from(body: $name) -> Self {
                Self::$name(body)
            }
        })*
    };
}

events! {
    /// A run began.
    AgentStart = "agent_start",
    /// A run ended; another may follow before the session settles.
    AgentEnd = "agent_end",
    /// The session is idle again: the end of everything that a prompt set off.
    AgentSettled = "agent_settled",
    /// A turn (one answer and its tool calls) began.
    TurnStart = "turn_start",
    /// A turn ended.
    TurnEnd = "turn_end",
    /// A message began.
    MessageStart = "message_start",
    /// An answer grew.
    MessageUpdate = "message_update",
    /// A message is complete and on disk.
    MessageEnd = "message_end",
    /// A tool call began.
    ToolExecutionStart = "tool_execution_start",
    /// A tool call has something to show.
    ToolExecutionUpdate = "tool_execution_update",
    /// A tool call ended.
    ToolExecutionEnd = "tool_execution_end",
    /// The queues of waiting messages changed.
    QueueUpdate = "queue_update",
    /// A failed answer is asked for again after a pause.
    AutoRetryStart = "auto_retry_start",
    /// The retries came to an end, well or not.
    AutoRetryEnd = "auto_retry_end",
    /// A provider took longer than a limit allows; only after `hello`.
    ProviderStalled = "provider_stalled",
    /// The older part of the context is being summarised.
    CompactionStart = "compaction_start",
    /// A compaction came to its end, well or not.
    CompactionEnd = "compaction_end",
    /// A summary failed for a reason that may pass, and is asked for again after a pause.
    SummarizationRetryScheduled = "summarization_retry_scheduled",
    /// The pause is over, and the summary is asked for again.
    SummarizationRetryAttemptStart = "summarization_retry_attempt_start",
    /// The retries of a summary came to an end, well or not.
    SummarizationRetryFinished = "summarization_retry_finished",
    /// An entry other than a message was written.
    EntryAppended = "entry_appended",
    /// The session's name changed.
    SessionInfoChanged = "session_info_changed",
    /// The thinking level changed.
    ThinkingLevelChanged = "thinking_level_changed",
    /// A `bash` command printed something.
    BashExecutionUpdate = "bash_execution_update",
    /// A background process of the tool `bash` ended; only after `hello`.
    ProcessEnd = "process_end",
    /// Another model takes the place of one whose answer failed; only after `hello`.
    ModelFallback = "model_fallback",
    /// The daemon takes commands; only as the first line of `agentd --stdio --ready`.
    Ready = "ready",
    /// Something is shown to the user, or asked of them.
    ExtensionUiRequest = "extension_ui_request",
    /// A question to the user is over; only after `hello` with `sessions`.
    UiRequestResolved = "ui_request_resolved",
    /// A session was opened; only after `watch_sessions`.
    SessionOpened = "session_opened",
    /// Something about a session changed; only after `watch_sessions`.
    SessionChanged = "session_changed",
    /// A session was closed; only to those who follow it after `hello` with `sessions`, and after `watch_sessions`.
    SessionClosed = "session_closed",
    /// This client was too slow, and events were not sent to it; only after `hello` with `sessions`.
    Lagged = "lagged",
    /// The session's tools, or which of them are active, changed; only after `hello` with `sessions`.
    ToolsChanged = "tools_changed",
    /// The model calls a tool of a client; only to the connection that registered the tool.
    ToolRequest = "tool_request",
    /// A call of a client's tool needs no answer any more; only to the connection that registered the tool.
    ToolCancel = "tool_cancel",
}

/// The daemon takes commands. It says so only where it is asked to: commands that are sent before wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ready {}

/// A run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStart {}

/// A run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentEnd {
    /// Every message that the run added, prompts included.
    pub messages: Vec<Json<Message>>,
    /// Whether the failed answer is tried again by itself.
    #[serde(default)]
    pub will_retry: bool,
}

/// The session is idle again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSettled {
    /// Whether someone stopped the run.
    #[serde(default)]
    pub aborted: bool,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStart {}

/// A turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The answer.
    pub message: Json<Message>,
    /// The results of its tool calls, in the order of the calls.
    pub tool_results: Vec<Json<Message>>,
}

/// A message began. An answer has no content yet: build it from the updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageStart {
    /// The message; for an answer, its frame.
    pub message: Json<Message>,
}

/// A message is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageEnd {
    /// The message, as it stands in the session file.
    pub message: Json<Message>,
}

/// An answer grew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageUpdate {
    /// Tokens so far; zeros until the provider reports them.
    #[serde(default = "zero_usage")]
    pub usage: Json<Usage>,
    /// What was added.
    pub assistant_message_event: AssistantMessageEvent,
}

fn zero_usage() -> Json<Usage> {
    Json::from_raw(serde_json::value::RawValue::NULL.to_owned())
}

/// What was added to an answer. `contentIndex` is the block's place in the answer's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum AssistantMessageEvent {
    /// A text block began.
    #[serde(rename = "text_start")]
    TextStart {
        /// Place in the content.
        content_index: usize,
    },
    /// Text came.
    #[serde(rename = "text_delta")]
    TextDelta {
        /// Place in the content.
        content_index: usize,
        /// What was added.
        delta: String,
    },
    /// A text block ended.
    #[serde(rename = "text_end")]
    TextEnd {
        /// Place in the content.
        content_index: usize,
        /// The whole text.
        content: String,
    },
    /// A thinking block began.
    #[serde(rename = "thinking_start")]
    ThinkingStart {
        /// Place in the content.
        content_index: usize,
    },
    /// Thinking came.
    #[serde(rename = "thinking_delta")]
    ThinkingDelta {
        /// Place in the content.
        content_index: usize,
        /// What was added.
        delta: String,
    },
    /// A thinking block ended.
    #[serde(rename = "thinking_end")]
    ThinkingEnd {
        /// Place in the content.
        content_index: usize,
        /// The whole thinking.
        content: String,
    },
    /// A tool call began.
    #[serde(rename = "toolcall_start")]
    ToolcallStart {
        /// Place in the content.
        content_index: usize,
        /// The call's id.
        #[serde(default)]
        id: String,
        /// The tool.
        #[serde(default)]
        tool_name: String,
    },
    /// A part of the arguments' JSON text came.
    #[serde(rename = "toolcall_delta")]
    ToolcallDelta {
        /// Place in the content.
        content_index: usize,
        /// What was added.
        delta: String,
    },
    /// A tool call is complete.
    #[serde(rename = "toolcall_end")]
    ToolcallEnd {
        /// Place in the content.
        content_index: usize,
        /// The whole call.
        tool_call: ToolCallBlock,
    },
}

/// A tool call as a content block: with its `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ToolCallBlock {
    /// The only kind.
    #[serde(rename = "toolCall")]
    ToolCall(ToolCall),
}

/// A tool call began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionStart {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments as the model gave them, before any preparation.
    pub args: Json<Map<String, Value>>,
}

/// A tool call has something to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionUpdate {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments as the model gave them.
    pub args: Json<Map<String, Value>>,
    /// The result so far: it replaces what an earlier update said.
    pub partial_result: ToolResult,
}

/// A tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionEnd {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The result.
    pub result: ToolResult,
    /// Whether the call failed.
    pub is_error: bool,
    /// How long the tool worked, in milliseconds; absent when it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
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

/// A failed answer is asked for again after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AutoRetryStart {
    /// Which retry this is, counted from 1.
    pub attempt: u32,
    /// How many there are at most.
    pub max_attempts: u32,
    /// The pause in milliseconds.
    pub delay_ms: u64,
    /// The `errorMessage` of the failed answer.
    pub error_message: String,
}

/// The retries came to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AutoRetryEnd {
    /// Whether a retry had an answer.
    pub success: bool,
    /// How many retries there were.
    pub attempt: u32,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_error: Option<String>,
}

/// The older part of the context is being summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionStart {
    /// Why.
    pub reason: CompactionReason,
}

/// A compaction came to its end: with `result`, `aborted`, or `errorMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionEnd {
    /// Why there was one.
    pub reason: CompactionReason,
    /// What it did; its entry is on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// Whether someone stopped it. Nothing has changed then.
    pub aborted: bool,
    /// Whether the answer that the context was too long for is asked for again.
    pub will_retry: bool,
    /// Why it failed. Nothing has changed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// A summary is asked for again after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SummarizationRetryScheduled {
    /// Which retry this is, counted from 1.
    pub attempt: u32,
    /// How many there are at most.
    pub max_attempts: u32,
    /// The pause in milliseconds.
    pub delay_ms: u64,
    /// Why there is no summary yet.
    pub error_message: String,
}

/// A summary is asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "camelCase")]
pub enum SummarizationRetryAttemptStart {
    /// For a compaction.
    Compaction {
        /// Why there is one.
        reason: CompactionReason,
    },
    /// For a branch that the conversation leaves.
    BranchSummary,
}

/// The retries of a summary came to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummarizationRetryFinished {}

/// An entry other than a message was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryAppended {
    /// The entry, as it stands in the session file.
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
    /// What was added, cleaned of terminal codes.
    pub delta: String,
}

/// A provider took longer than a limit allows. Comes before what is done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderStalled {
    /// What was waited for.
    pub phase: StallPhase,
    /// The provider.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// How long it was waited for, in milliseconds.
    pub waited_ms: u64,
    /// The limit, in milliseconds.
    pub limit_ms: u64,
    /// What comes next.
    pub action: StallAction,
}

/// What of a provider was waited for.
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

/// What is done about a provider that takes too long.
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

/// Another model takes the place of one whose answer failed, until the session settles: the next prompt begins with the chosen
/// model again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelFallback {
    /// The model that failed, or is not asked now.
    pub from: ModelName,
    /// The model that is asked in its place.
    pub to: ModelName,
    /// The thinking level that goes with it.
    pub thinking_level: ThinkingLevel,
    /// What it is asked for.
    pub purpose: FallbackPurpose,
    /// Why.
    pub reason: FallbackReason,
    /// The `errorMessage` of the answer that failed.
    pub error_message: String,
}

/// What another model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackPurpose {
    /// The answer, and what follows until the session settles.
    Answer,
    /// One summary of a compaction or of a branch.
    Summary,
}

/// Why another model takes the place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// It cannot be asked: no key is there for it, or its API is not spoken.
    NoCredentials,
    /// The provider refused the key.
    Auth,
    /// A limit of the account: no quota, no credit. The model is left alone for some minutes.
    AccountLimit,
    /// The provider refused the request: an unknown model, a field that it does not take.
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
    /// Who had it ended; absent when it ended by itself, or with its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<ProcessEndedBy>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Bytes of text that it wrote.
    pub output_bytes: u64,
}

/// Who had a background process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProcessEndedBy {
    /// Its time limit.
    Timeout,
    /// The model, by `process_kill`.
    Model,
}

impl AssistantMessage {
    /// The frame of an answer that is about to stream: no content, no tokens, `stopReason` pending.
    #[must_use]
    pub fn pending(api: &str, provider: &str, model: &str, timestamp: i64) -> Self {
        Self {
            content: Vec::new(),
            api: api.to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Pending,
            timestamp,
            response_model: None,
            response_id: None,
            raw_stop_reason: None,
            error_message: None,
            code: None,
            duration_ms: None,
            thinking_level: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_flat_objects_with_the_type_first() {
        let event = Event::from(MessageEnd {
            message: serde_json::from_str(r#"{"role":"user","content":"a","timestamp":1.0}"#).unwrap(),
        });
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(line, r#"{"type":"message_end","message":{"role":"user","content":"a","timestamp":1.0}}"#);
        assert_eq!(Event::parse(event.name(), &line).unwrap().unwrap(), event);
        assert_eq!(serde_json::to_string(&Event::from(AgentStart {})).unwrap(), r#"{"type":"agent_start"}"#);
    }

    #[test]
    fn deltas_have_the_reference_shape() {
        let event = Event::from(MessageUpdate {
            usage: Json::new(Usage::default()).unwrap(),
            assistant_message_event: AssistantMessageEvent::TextDelta {
                content_index: 0,
                delta: "Hi".into(),
            },
        });
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"type":"message_update","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Hi"}}"#
        );
    }
}
