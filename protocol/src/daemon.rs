//! What one daemon for many sessions and clients adds to the wire: introductions, sessions by name, attaching.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    command::WorkKind,
    message::{Message, null_as_default},
    model::ThinkingLevel,
    session::SessionState,
    tool::ToolResult,
    ui::ExtensionUiRequest,
};

/// The version of what [`HelloParams`] opens, counted from 1.
pub const PROTOCOL: u32 = 1;

/// The fields of `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloParams {
    /// The version that the client speaks: 1.
    pub protocol: u32,
    /// Who the client is, for lists and logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// What the client can do and wants.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: ClientCapabilities,
    /// What the client may do; default `control`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub role: Role,
}

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientInfo {
    /// The program.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a client can do and wants. All are off by default, which is the plain wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCapabilities {
    /// Events carry `sessionId` and `seq`, and several sessions can be attached at once.
    #[serde(default, deserialize_with = "null_as_default")]
    pub sessions: bool,
    /// The client answers questions to the user, those of the daemon itself included.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ui: bool,
    /// The client wants the form of `message_update` that the reference had before 0.84: each carries the answer so far, and
    /// messages with `role:"system"` are left out.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub cumulative: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    #[default]
    Control,
    /// Reading, attaching, watching.
    Observe,
}

/// The answer to `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The version that is spoken from here.
    pub protocol: u32,
    /// Who answers.
    pub daemon: DaemonInfo,
    /// What the daemon can do.
    pub capabilities: Vec<String>,
    /// What it takes at most.
    pub limits: Limits,
}

/// Who a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonInfo {
    /// Always `agentd`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Names this life of the daemon: `seq`s of another epoch mean nothing.
    pub epoch: String,
}

/// What a daemon takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The longest line, in bytes.
    pub max_line_bytes: u64,
}

/// The fields of `open_session`. At most one of `path`, `sessionId`, `continue` and `ephemeral` says which session;
/// without any it is a new one. In a session that is open already, model, level, tools and name are changed to what is asked for,
/// `env` counts for what this client starts, and all else that differs is refused with `invalid_field`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenSessionParams {
    /// The folder to work in: an absolute path.
    pub cwd: String,
    /// The session file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The id of a session. One that does not exist becomes the id of a new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The most recent session of the folder, or a new one.
    #[serde(default, rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_last: Option<bool>,
    /// A new session that is kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// Names the session.
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
    /// In the place of the built-in system prompt: a text, or a file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// After the system prompt: a text, or a file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Refused with `busy`, and nothing changed, where the session is open and at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_idle: Option<bool>,
    /// Session flags of the command line, read as there; the fields above win.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The environment of the session and of its child processes; default the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the connection follows the session from here; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<bool>,
}

/// The answer to `open_session`: the state, and where its events are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenedSession {
    /// The state, as of `get_state`.
    #[serde(flatten)]
    pub state: SessionState,
    /// This life of the daemon.
    pub epoch: String,
    /// The number of the last event before this answer; 0 before the first.
    pub seq: u64,
    /// What is to be told to the user: a line each, of warnings and errors that `get_diagnostics` gives with file and line
    /// apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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
    /// The last event that the client has: what came after it is sent, if it is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Position>,
}

/// A place in a session's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The life of the daemon that counted.
    pub epoch: String,
    /// The number of an event.
    pub seq: u64,
}

/// The answer to `attach_session`. Every event after `seq` follows, none twice, none missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttachedSession {
    /// The state at `seq`; where the missed events follow, as it is now.
    pub state: SessionState,
    /// This life of the daemon.
    pub epoch: String,
    /// The number of the last event before what follows: that of `since` when the missed events are sent, else of the
    /// last event there was.
    pub seq: u64,
    /// Whether the missed events follow; false: read the messages again with `get_messages`.
    pub replayed: bool,
    /// What is being produced at `seq`; absent when nothing is, and when the missed events follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Questions to the user that nobody has answered yet.
    pub pending_ui: Vec<ExtensionUiRequest>,
}

/// What is being produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InFlight {
    /// The answer that streams, as far as it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Json<Message>>,
    /// The tool calls that run.
    pub tools: Vec<RunningTool>,
}

/// A tool call that runs.
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
    /// What becomes of its work; default `drain`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mode: EndMode,
}

/// What becomes of work when something ends.
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
    /// Only sessions that are in memory (true), or that are not (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// At most so many; default 50, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only sessions with this text in their id, name, folder or messages, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// The answer to `list_sessions`, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// What gets the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Session files that cannot be read, 100 at most: on the first page of a list of all sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableSession>,
}

/// A session file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableSession {
    /// The file.
    pub path: String,
    /// What is wrong with it, as the end of a sentence that begins with the path.
    pub problem: String,
}

/// What lists say of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// When it was made: ISO 8601 in UTC.
    pub created: String,
    /// When it was written to last: ISO 8601 in UTC.
    pub modified: String,
    /// Its messages, of every branch.
    pub message_count: u64,
    /// The user's first text; empty when there is none.
    pub first_message: String,
    /// The session that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Whether it is in memory.
    pub live: bool,
    /// Whether it is at work.
    pub is_streaming: bool,
    /// How many clients follow it.
    pub clients: u32,
}

/// The answer to `daemon_status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Who answers.
    pub daemon: DaemonInfo,
    /// How long it has run, in milliseconds.
    pub uptime_ms: u64,
    /// The socket that it listens on; absent for a private daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The agent directory.
    pub agent_dir: String,
    /// Connections.
    pub clients: u32,
    /// Sessions in memory.
    pub live_sessions: u32,
    /// Sessions that left memory because they were idle, and come back with the next command.
    #[serde(default)]
    #[serde(rename = "restingSessions")]
    pub unloaded_sessions: u32,
    /// Sessions at work.
    pub running_sessions: u32,
    /// How the daemon is ending; absent while it is not. It takes no new work then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<DaemonEnding>,
    /// Resident memory in bytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Tasks of the daemon's runtime that are alive: some for each connection and each session in memory.
    #[serde(default)]
    pub tasks: u32,
    /// What there is of what has a limit.
    #[serde(default)]
    pub usage: DaemonUsage,
    /// What was counted since the start.
    pub counters: Counters,
}

/// How a daemon is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonEnding {
    /// What becomes of work.
    pub mode: EndMode,
    /// How long work still has, in milliseconds; then it is stopped.
    pub remaining_ms: u64,
}

/// What a daemon uses of what has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonUsage {
    /// Connections; the setting `daemon.maxClients`.
    pub clients: Amount,
    /// Sessions that are known, in memory or not; the setting `daemon.maxSessions`.
    pub sessions: Amount,
    /// Resident memory in bytes, 0 where the system does not tell; the setting `daemon.maxMemoryBytes`.
    pub memory_bytes: Amount,
    /// Commands of sessions that run; the setting `daemon.maxCommands`.
    pub commands: Amount,
    /// Open files, sockets and the like, 0 where the system does not tell; the system's limit (`ulimit -Hn`).
    pub open_files: Amount,
}

/// What there is of something, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Amount {
    /// What there is.
    pub used: u64,
    /// The limit; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What a daemon counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Connections that were accepted.
    pub connections: u64,
    /// Sessions that were loaded, again included.
    pub sessions_loaded: u64,
    /// Sessions that left memory because they were idle.
    #[serde(default)]
    pub sessions_unloaded: u64,
}

/// The fields of `shutdown`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownParams {
    /// What becomes of work; default `drain`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mode: EndMode,
    /// How long work has to finish, in milliseconds; then it is stopped. Default the setting
    /// `daemon.shutdownDeadlineMs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// The fields of `list_processes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListProcessesParams {
    /// Only processes of this session; default those of every session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `list_processes`: by session, then oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessList {
    /// The processes that sessions started, and all that came of these.
    pub processes: Vec<ProcessInfo>,
}

/// A process that works for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// The session.
    pub session_id: String,
    /// The process.
    pub pid: u32,
    /// The process that it is shown under: its parent, if that is in the list too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_pid: Option<u32>,
    /// What it works for; `background` once the command that started it has ended.
    pub kind: WorkKind,
    /// The id of the tool call, or of the `bash` command if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// Its command line, arguments joined by spaces; its name in brackets where the system shows no arguments. At most
    /// 4,096 bytes.
    pub command: String,
    /// When it was started: ISO 8601 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Processor time that it has used, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Its resident memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A session was opened; to those who watch the sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionOpened {
    /// The session.
    pub session: SessionInfo,
}

/// A session has another name, began or ended work, came into memory or left it, or has more or fewer clients; to those
/// who watch the sessions. Changes in quick succession can come as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionChanged {
    /// The session as it is now.
    pub session: SessionInfo,
}

/// A session was closed; to those who follow it or watch the sessions. Its file stays.
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
