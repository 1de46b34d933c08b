//! Settings of the daemon, and the limits of its clients, sessions and stored outputs.

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use super::defaults;

/// Settings of tools that clients provide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClientToolSettings {
    /// The time limit of a call in milliseconds for tools that do not set one; 0 for no limit. Default 600000
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
    /// The time that an idle session stays in memory, in milliseconds; the next command loads it again. 0: for
    /// ever; default 600000 (10 minutes). A private daemon (`agentd --stdio`) keeps its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 600_000)))]
    pub idle_unload_ms: Option<u64>,
    /// The time for work to finish when the daemon ends, in milliseconds; then it is stopped. Default 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 30_000)))]
    pub shutdown_deadline_ms: Option<u64>,
    /// How much waits for a client that reads too slowly, in bytes for each session that it follows; beyond that the
    /// session waits for the client, or cuts it off if it is not the only one. Default 1048576.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_048_576)))]
    pub outbox_bytes: Option<u64>,
    /// The time that a session waits for a full outbox before the client is cut off, in milliseconds; default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1000)))]
    pub lag_grace_ms: Option<u64>,
    /// The bytes of a session's last events that are kept for clients that come back; default 262144.
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
    /// The most clients at the same time; a further one gets an error and is disconnected. Default 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_CLIENTS)))]
    pub max_clients: Option<u64>,
    /// The most sessions in the registry at the same time, loaded or not. To make room for another, those that no client
    /// follows and that were unloaded longest ago are evicted; a command that names one opens it again from its file.
    /// 0 for no limit; default 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_SESSIONS)))]
    pub max_sessions: Option<u64>,
    /// The most sessions that one client follows at the same time; 0 for no limit, default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_FOLLOWED_SESSIONS)))]
    pub max_followed_sessions: Option<u64>,
    /// The most commands about the daemon and the set-up (`list_sessions`, `login_finish`, `close_session` and the like) that one
    /// client has in progress; 0 for no limit, default 64. Commands to sessions wait in order instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_PENDING_COMMANDS)))]
    pub max_pending_commands: Option<u64>,
    /// The most memory of the daemon in bytes, without its children. Above it, idle sessions are unloaded at
    /// once, the least recently used first; while that is not enough, no session is opened and no message taken. An eighth of
    /// it each is for lines that clients are sending, waiting commands, streaming answers, and waiting messages. 0
    /// for no limit; default 2147483648 (2 GiB), and at most a quarter of the machine's memory. A private daemon
    /// (`agentd --stdio`) has no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_MEMORY_BYTES)))]
    pub max_memory_bytes: Option<u64>,
    /// The most commands of all sessions at the same time, those in the background included; processes that a command starts
    /// count under `processes.maxCount` instead. 0 for no limit; default 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = defaults::DEFAULT_MAX_COMMANDS)))]
    pub max_commands: Option<u64>,
}

/// The limits of one session; 0 is no limit. Only read from the user's settings, at the daemon's
/// start. Each limit that is reached is an
/// error with the code `limit_reached` for the client that reached it, and does not affect others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LimitSettings {
    /// The longest message that is taken (`prompt`, `steer`, `follow_up`, `abort_and_prompt`), in bytes of its text and of its
    /// images' base64 together. Default 33554432 (32 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 33_554_432)))]
    pub max_message_bytes: Option<u64>,
    /// The most messages that wait in a session; default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1000)))]
    pub max_queued_messages: Option<u64>,
    /// The most bytes of the messages that wait in a session, of their texts and of their images' base64.
    /// Default 67108864 (64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 67_108_864)))]
    pub max_queued_bytes: Option<u64>,
    /// How large a session may grow, in bytes of its entries, all branches together: at that size it takes no more messages, and
    /// a file of more than twice that size is not opened. Default 536870912 (512 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 536_870_912)))]
    pub max_session_bytes: Option<u64>,
}

/// The disk space of long outputs of commands. Outputs over the limit are removed at the daemon's start and when more was
/// written, oldest first; never an output that is still being written, and never a message. Only read from the user's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct StorageSettings {
    /// The most bytes of the long outputs of all sessions together; 0 for no limit. Default 10737418240 (10 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10_737_418_240_u64)))]
    pub max_artifact_bytes: Option<u64>,
    /// The number of days that a long output is kept after its last change; 0 for no limit. Default 90.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 90)))]
    pub max_artifact_age_days: Option<u64>,
    /// How much of the output of one command goes to a file, in bytes from its beginning; the command goes on, and the model is
    /// told. 0 for no limit; default 1073741824 (1 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_073_741_824)))]
    pub max_output_bytes: Option<u64>,
}
