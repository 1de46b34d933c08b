//! The event table: the lines that the daemon sends unasked.
//!
//! An event is one JSON object with a `type`. Fields that only some connections want (`sessionId`, `seq`) are not part
//! of an event: the connection adds them to the finished line.

mod delta_line;
mod run;
mod session;

use serde::{Serialize, Serializer};

pub use self::{run::*, session::*};

use crate::{
    agent_mode::ModeChanged,
    budget::BudgetReached,
    chunked::{Ready, RpcChunk, RpcFrameError},
    client_tools::{ToolCancel, ToolRequest},
    credentials::LoginUpdate,
    daemon::{Lagged, SessionActivity, SessionChanged, SessionClosed, SessionOpened},
    eval_executor::{EvalCancel, EvalRequest},
    host_tools::{HostToolCall, HostToolCancel},
    host_uris::{HostUriCancel, HostUriRequest},
    isolation::IsolationMerge,
    jobs::{JobEnd, JobStart},
    mcp::McpServersChange,
    permissions::PermissionsChanged,
    prompt_result::{PromptResult, SessionSettled},
    resources::AvailableCommandsUpdate,
    stream_rules::TtsrTriggered,
    subagent::{SubagentEvent, SubagentLifecycle, SubagentProgressed},
    todo::TodoReminder,
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

            /// The `type` of its line.
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
    /// Nothing will wake the session any more; only after `hello` with `promptResult`.
    SessionSettled = "session_settled",
    /// A prompt of this client has ended; only after `hello` with `promptResult`.
    PromptResult = "prompt_result",
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
    /// A tool call has new output.
    ToolExecutionUpdate = "tool_execution_update",
    /// A tool call ended.
    ToolExecutionEnd = "tool_execution_end",
    /// The queues of waiting messages changed.
    QueueUpdate = "queue_update",
    /// A failed answer is retried after a pause.
    AutoRetryStart = "auto_retry_start",
    /// The retries ended, with or without an answer.
    AutoRetryEnd = "auto_retry_end",
    /// A provider took longer than a limit allows; only after `hello`.
    ProviderStalled = "provider_stalled",
    /// The older part of the context is being summarised.
    CompactionStart = "compaction_start",
    /// A compaction ended, successfully or not.
    CompactionEnd = "compaction_end",
    /// A summary failed for a transient reason and is retried after a pause.
    SummarizationRetryScheduled = "summarization_retry_scheduled",
    /// The pause is over, and the summary is retried.
    SummarizationRetryAttemptStart = "summarization_retry_attempt_start",
    /// The retries of a summary ended, with or without a summary.
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
    /// A job began: a background process or a subagent; only after `hello`.
    JobStart = "job_start",
    /// A job ended; only after `hello`.
    JobEnd = "job_end",
    /// A tool call changed files, and what it changed is kept; only after `hello`.
    CheckpointCreated = "checkpoint_created",
    /// The MCP servers of the session, their states or their tools have changed; only after `hello`.
    McpServersChange = "mcp_servers_change",
    /// Another model replaces one whose answer failed; only after `hello`.
    ModelFallback = "model_fallback",
    /// A call was refused, or the user was asked about it; only in sessions with permissions.
    PermissionDecision = "permission_decision",
    /// The permissions of the session were changed by a command; only after `hello`.
    PermissionsChanged = "permissions_changed",
    /// The session is in another mode, such as plan mode; only after `hello`.
    ModeChanged = "mode_changed",
    /// What the model wrote has matched rules on the stream; only after `hello`.
    TtsrTriggered = "ttsr_triggered",
    /// A budget is used up, and the work ends; only after `hello`.
    BudgetReached = "budget_reached",
    /// The agent has stopped, and tasks of its todo list are open; only after `hello`.
    TodoReminder = "todo_reminder",
    /// A subagent was started, or its state changed; only after `set_subagent_subscription`.
    SubagentLifecycle = "subagent_lifecycle",
    /// A subagent has got on with its work; only after `set_subagent_subscription`.
    SubagentProgressed = "subagent_progress",
    /// An event of the session of a subagent; only after `set_subagent_subscription` with `events`.
    SubagentEvent = "subagent_event",
    /// The changes of a subagent that worked in a copy were brought back, or could not be; only after `set_subagent_subscription`.
    IsolationMerge = "isolation_merge",
    /// The daemon takes commands; only as the first line of `agentd --stdio --ready`.
    Ready = "ready",
    /// A part of a line that is longer than 1 MiB; only after `negotiate_protocol` with version 2.
    RpcChunk = "rpc_chunk",
    /// An event was too long to be sent; only after `negotiate_protocol` with version 2.
    RpcFrameError = "rpc_frame_error",
    /// A notice or a question for the user.
    ExtensionUiRequest = "extension_ui_request",
    /// The commands that a message can begin with changed; only after `hello` or with `--ready`, once a client has sent
    /// `get_available_commands`.
    AvailableCommandsUpdate = "available_commands_update",
    /// An extension failed; the session goes on.
    ExtensionError = "extension_error",
    /// An extension tells of a login that it does: an address to open, a code to type there, or how far it is; only after `login_start`.
    LoginUpdate = "login_update",
    /// A question to the user is answered or closed; only after `hello` with `sessions`.
    UiRequestResolved = "ui_request_resolved",
    /// A session was opened; only after `watch_sessions`.
    SessionOpened = "session_opened",
    /// Something about a session changed; only after `watch_sessions`.
    SessionChanged = "session_changed",
    /// A session does something else than before, or has got on with it; only after `watch_sessions` with `activity`.
    SessionActivity = "session_activity",
    /// A session was closed; only for clients that follow it after `hello` with `sessions`, and after `watch_sessions`.
    SessionClosed = "session_closed",
    /// This client was too slow, and events were not sent to it; only after `hello` with `sessions`.
    Lagged = "lagged",
    /// The session's tools, or which of them are active, changed; only after `hello` with `sessions`.
    ToolsChanged = "tools_changed",
    /// The model calls a tool of a client; only to the connection that registered the tool.
    ToolRequest = "tool_request",
    /// A call of a client's tool needs no answer any more; only to the connection that registered the tool.
    ToolCancel = "tool_cancel",
    /// The model calls a tool of a host; only to the connection that sent `set_host_tools`.
    HostToolCall = "host_tool_call",
    /// A call of a host's tool needs no answer any more; only to the connection that sent `set_host_tools`.
    HostToolCancel = "host_tool_cancel",
    /// The model reads or writes a URL of a host; only to the connection that sent `set_host_uri_schemes`.
    HostUriRequest = "host_uri_request",
    /// A read or write of a host's URL needs no answer any more; only to the connection that sent `set_host_uri_schemes`.
    HostUriCancel = "host_uri_cancel",
    /// A cell of the tool `eval` is to be run; only to the connection that sent `set_eval_executor`.
    EvalRequest = "eval_request",
    /// A cell is to be stopped, and needs no answer any more; only to the connection that sent `set_eval_executor`.
    EvalCancel = "eval_cancel",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, message::Usage};

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
    fn deltas_have_the_shape_of_pi() {
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
