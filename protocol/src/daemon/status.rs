//! The daemon itself: its introduction, its status, its processes, its end.

use serde::{Deserialize, Serialize};

use super::sessions::EndMode;
use crate::{command::WorkKind, message::null_as_default};

/// The version of the protocol after `hello`, counted from 1.
pub const PROTOCOL: u32 = 1;

/// The fields of `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloParams {
    /// The version that the client speaks: 1.
    pub protocol: u32,
    /// The client's name and version, for lists and logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// The client's capabilities.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: ClientCapabilities,
    /// The client's role; default `control`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub role: Role,
}

/// A client's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientInfo {
    /// The program.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The capabilities of a client. All are off by default: the client then gets pi's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Events carry `sessionId` and `seq`, and several sessions can be attached at once.
    #[serde(default, deserialize_with = "null_as_default")]
    pub sessions: bool,
    /// The client answers questions to the user, those of the daemon itself included.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ui: bool,
    /// The client answers questions about calls (`permissions`): it gets them with all that is known, by the method `permission`
    /// instead of a `select`.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub permissions: bool,
    /// The client wants `message_update` in the form that pi had before 0.84: each carries the answer so far, and
    /// messages with `role:"system"` are left out.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub cumulative: bool,
    /// The client is another agent, and its prompts are no user's: they are not kept in the prompt history.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub agent: bool,
    /// The client hears how each of its prompts ends (`prompt_result`), and when nothing will wake the session any more
    /// (`session_settled`). Answers to prompts say whether the model is asked (`agentInvoked`).
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub prompt_result: bool,
    /// `message_start`, `message_update` and `message_end` carry a `messageId`, which those of one message share; it is unique
    /// in the daemon.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub message_ids: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The role of a client.
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
    /// The version that the connection uses from here on.
    pub protocol: u32,
    /// The daemon.
    pub daemon: DaemonInfo,
    /// The daemon's capabilities.
    pub capabilities: Vec<String>,
    /// The daemon's limits.
    pub limits: Limits,
}

/// A daemon's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonInfo {
    /// Always `agentd`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Identifies this start of the daemon: a `seq` of another epoch means nothing.
    pub epoch: String,
}

/// The limits of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The longest line, in bytes.
    pub max_line_bytes: u64,
}

/// The answer to `daemon_status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// The daemon.
    pub daemon: DaemonInfo,
    /// The time since its start, in milliseconds.
    pub uptime_ms: u64,
    /// The socket that it listens on; absent for a private daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The agent directory.
    pub agent_dir: String,
    /// The number of connections.
    pub clients: u32,
    /// The number of sessions in memory.
    pub live_sessions: u32,
    /// The number of sessions that were unloaded because they were idle; the next command loads them again.
    #[serde(default)]
    #[serde(rename = "restingSessions")]
    pub unloaded_sessions: u32,
    /// The number of sessions with an active run.
    pub running_sessions: u32,
    /// Set while the daemon is ending and takes no new work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<DaemonEnding>,
    /// Resident memory in bytes, where the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The number of tasks of the daemon's runtime: some for each connection and each session in memory.
    #[serde(default)]
    pub tasks: u32,
    /// The use of resources that have a limit.
    #[serde(default)]
    pub usage: DaemonUsage,
    /// Counts since the start.
    pub counters: Counters,
}

/// The end of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonEnding {
    /// Whether work is finished or stopped.
    pub mode: EndMode,
    /// The time that work still has, in milliseconds; then it is stopped.
    pub remaining_ms: u64,
}

/// A daemon's use of resources that have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonUsage {
    /// Connections; the setting `daemon.maxClients`.
    pub clients: Amount,
    /// Sessions in the registry, loaded or not; the setting `daemon.maxSessions`.
    pub sessions: Amount,
    /// Resident memory in bytes, 0 where the system does not report it; the setting `daemon.maxMemoryBytes`.
    pub memory_bytes: Amount,
    /// Running commands of sessions; the setting `daemon.maxCommands`.
    pub commands: Amount,
    /// Open files, sockets and the like, 0 where the system does not report them; the system's limit (`ulimit -Hn`).
    pub open_files: Amount,
}

/// The use of a resource, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Amount {
    /// The use.
    pub used: u64,
    /// The limit; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Counts of a daemon since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Accepted connections.
    pub connections: u64,
    /// Loads of sessions, repeated ones included.
    pub sessions_loaded: u64,
    /// Unloads of idle sessions.
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
    /// The time for work to finish, in milliseconds; then it is stopped. Default: the setting
    /// `daemon.shutdownDeadlineMs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// The fields of `list_processes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListProcessesParams {
    /// Only processes of this session; default: those of all sessions in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `list_processes`: by session, then oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessList {
    /// The processes that sessions started, and their descendants.
    pub processes: Vec<ProcessInfo>,
}

/// A process that works for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// The session.
    pub session_id: String,
    /// The process id.
    pub pid: u32,
    /// The id of its parent, if that is in the list too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_pid: Option<u32>,
    /// The kind of work it belongs to; `background` once the command that started it has ended.
    pub kind: WorkKind,
    /// The id of the tool call, or of the `bash` command if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// Its command line, arguments joined by spaces; its name in brackets where the system shows no arguments. At most
    /// 4,096 bytes.
    pub command: String,
    /// The time of its start: ISO 8601 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Processor time that it has used, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Its resident memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}
