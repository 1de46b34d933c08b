//! Sessions of a daemon: opening, attaching, closing, lists, and the events of clients that follow several.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    mcp::GivenMcpServers,
    message::{Message, null_as_default},
    model::ThinkingLevel,
    session::SessionState,
    tool::ToolResult,
    ui::ExtensionUiRequest,
};

/// The fields of `open_session`. At most one of `path`, `sessionId`, `continue` and `ephemeral` names the session;
/// without any it is a new one. In a session that is open already, model, level, tools and name change to the requested ones,
/// `env` applies to what this client starts, and any other difference is refused with `invalid_field`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenSessionParams {
    /// The folder to work in: an absolute path. It can be left out with `sessionDir`: then it is that of the current session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// The folder of session files: the most recent session in it goes on, or a new one begins there, unless another field says which
    /// session is meant. Without `cwd`, the flags of the current session count, and that session is ended if nobody else is in it; the
    /// path is then relative to its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_dir: Option<String>,
    /// The session file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The id of a session. An id that does not exist becomes that of a new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The most recent session of the folder, or a new one.
    #[serde(default, rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_last: Option<bool>,
    /// A new session that is kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// The session's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model: an id, a part of an id or name, or `provider/id`; with an optional `:level`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// The tools that the model may call, or changes of the default (`+name`, `-name`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Replaces the built-in system prompt: a text, or a file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt: a text, or a file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// If true, and the session is open and running, the command is refused with `busy` and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_idle: Option<bool>,
    /// Session flags of the command line. The fields above take precedence.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The environment of the session and of its child processes; default the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// MCP servers that the session has besides those of `mcp.json`, for as long as it is open; of two with the same name these count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<GivenMcpServers>,
    /// Further folders of the workspace, as absolute paths, for as long as the session is open: permissions, sandbox, MCP servers and an
    /// editor's files take them as they take `cwd`. Relative paths count from `cwd` all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Vec<String>>,
    /// Whether the connection follows the session from here; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<bool>,
}

/// The answer to `open_session`: the state, and where its events are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenedSession {
    /// The state, as `get_state` gives it.
    #[serde(flatten)]
    pub state: SessionState,
    /// The daemon's epoch.
    pub epoch: String,
    /// The number of the last event before this answer; 0 before the first.
    pub seq: u64,
    /// Warnings and errors for the user, a line each; `get_diagnostics` gives them with file and line
    /// as fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Questions to the user that are not answered yet; absent where there are none.
    #[serde(default, rename = "pendingUi", skip_serializing_if = "Vec::is_empty")]
    pub pending_ui: Vec<ExtensionUiRequest>,
    /// With `sessionDir`: always false, as nothing prevents it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<bool>,
    /// With `sessionDir`: whether the session has messages or was open, and so is no new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<bool>,
}

/// The fields of commands that name a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// The session's id.
    pub session_id: String,
}

/// The fields of `attach_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttachSessionParams {
    /// The session's id.
    pub session_id: String,
    /// The last event that the client has. The events after it are sent, if they are still kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Position>,
}

/// A position in a session's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The epoch that the number belongs to.
    pub epoch: String,
    /// The number of an event.
    pub seq: u64,
}

/// The answer to `attach_session`. Every event after `seq` follows exactly once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttachedSession {
    /// The state at `seq`; the current state if the missed events follow.
    pub state: SessionState,
    /// The daemon's epoch.
    pub epoch: String,
    /// The number of the last event before those that follow: that of `since` when the missed events are sent, else that of the
    /// newest event.
    pub seq: u64,
    /// Whether the missed events follow; false: read the messages again with `get_messages`.
    pub replayed: bool,
    /// The answer and tool calls in progress at `seq`; absent when there are none, and when the missed events follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Questions to the user that are not answered yet.
    pub pending_ui: Vec<ExtensionUiRequest>,
}

/// An answer and tool calls in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// The streaming answer so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Json<Message>>,
    /// The `messageId` of that answer's events, for a client with the capability `messageIds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The running tool calls.
    pub tools: Vec<RunningTool>,
}

/// A running tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningTool {
    /// The id of the call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub args: serde_json::Value,
    /// The result so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<ToolResult>,
}

/// The fields of `close_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CloseSessionParams {
    /// The session's id.
    pub session_id: String,
    /// Whether its work is finished or stopped; default `drain`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mode: EndMode,
}

/// What happens to work in progress when a session or the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EndMode {
    /// It is finished first.
    #[default]
    Drain,
    /// It is stopped.
    Abort,
}

/// The fields of `list_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListSessionsParams {
    /// Only sessions of this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only sessions that are in memory (true), or only others (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// The most sessions to list; default 50, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only sessions with this text in their id, name, folder or messages, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// The answer to `list_sessions`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Session files that cannot be read, at most 100; only on the first page of a list of all sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableSession>,
}

/// A session file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableSession {
    /// The file.
    pub path: String,
    /// The problem, as the end of a sentence that begins with the path.
    pub problem: String,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The session's id.
    pub id: String,
    /// Its file; absent for a session in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The folder that it works in.
    pub cwd: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The time of its creation: ISO 8601 in UTC.
    pub created: String,
    /// The time of its last change: ISO 8601 in UTC.
    pub modified: String,
    /// The number of its messages, on all branches.
    pub message_count: u64,
    /// What the user typed first, without files and piped input beside it; empty when there is none.
    pub first_message: String,
    /// The answers of models, on all branches.
    #[serde(default)]
    pub turns: u64,
    /// What was spent in it, on all branches, in US dollars; what a fork took over is counted to the session that paid for it.
    #[serde(default)]
    pub cost: f64,
    /// The model of the last answer, else the one that was chosen last, as `provider/id`; absent before either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// The name of the agent that works in it, where it is the session of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The id of the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether it is in memory.
    pub live: bool,
    /// Whether a run is active.
    pub is_streaming: bool,
    /// The number of clients that follow it.
    pub clients: u32,
}

/// A session was opened. For clients that watch sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionOpened {
    /// The session.
    pub session: SessionInfo,
}

/// A session changed its name, began or ended work, was loaded or unloaded, or gained or lost a client. For clients
/// that watch sessions. Changes in quick succession can come as one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionChanged {
    /// The session as it is now.
    pub session: SessionInfo,
}

/// A session was closed. For clients that follow it or watch sessions. Its file stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionClosed {
    /// The session's id.
    pub session_id: String,
}

/// This client did not keep up: events from `fromSeq` on were not sent. Attach again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Lagged {
    /// The session.
    pub session_id: String,
    /// The first event that was not sent.
    pub from_seq: u64,
}
