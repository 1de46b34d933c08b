//! The limits of the daemon layer, each named once with its unit and reason. Limits of one session are those of `agentd-session`
//! (`Limits::default`), limits of one line those of `agentd-protocol`. [`daemon_limits`](crate::daemon_limits) applies the settings.

use std::time::Duration;

pub use agentd_protocol::settings::defaults::{
    DEFAULT_MAX_CLIENTS, DEFAULT_MAX_COMMANDS, DEFAULT_MAX_FOLLOWED_SESSIONS, DEFAULT_MAX_MEMORY_BYTES,
    DEFAULT_MAX_PENDING_COMMANDS, DEFAULT_MAX_SESSIONS,
};

// Defaults of settings; those above stand in the protocol, for the schema. The schema of the settings and `docs/` name the others,
// too; a test of `daemon_limits` compares them.

/// The time that an idle session stays in memory (`daemon.idleUnloadMs`).
pub const DEFAULT_IDLE_UNLOAD: Duration = Duration::from_secs(600);

/// The longest pause of a client within a line (`daemon.lineIdleMs`).
pub const DEFAULT_LINE_IDLE: Duration = Duration::from_secs(60);

/// The time for work to finish when the daemon ends (`daemon.shutdownDeadlineMs`).
pub const DEFAULT_SHUTDOWN_DEADLINE: Duration = Duration::from_secs(30);

/// Bytes that the long outputs of all sessions take together (`storage.maxArtifactBytes`).
pub const DEFAULT_MAX_ARTIFACT_BYTES: u64 = 10 << 30;

/// Days that long outputs are kept (`storage.maxArtifactAgeDays`).
pub const DEFAULT_MAX_ARTIFACT_AGE_DAYS: u64 = 90;

/// The shortest limit that `daemon.maxLineBytes` may set: shorter lines could not be answered with a reason.
pub const MIN_LINE_BYTES: usize = 1 << 10;

// Connections.

/// Clients beyond `daemon.maxClients` that may look at the daemon or end it.
pub const RESERVED_CLIENTS: usize = 4;

/// Answers of a connection itself that wait to be written before reading pauses.
pub const WAITING_ANSWERS: usize = 16;

/// Lines that a connection handles in one turn while no other connection waits for its turn.
pub const LINES_A_TURN: usize = 16;

/// Lines from a socket that wait to be handled before reading pauses. Few, since each may be as long as the limit.
pub const WAITING_SOCKET_LINES: usize = 4;

/// Lines from stdin that wait to be handled before reading pauses.
pub const WAITING_STDIN_LINES: usize = 64;

/// Lines from a client in this process that wait to be handled.
pub const WAITING_IN_PROCESS_LINES: usize = 1;

/// Batches of lines that wait to be written to a client, beside the one that is being written.
pub const WAITING_BATCHES: usize = 2;

/// A batch of this many bytes waits until those before it are being written, so that few long ones wait.
pub const LONG_BATCH_BYTES: usize = 512 << 10;

/// An unfinished line that has not grown for this long gives its memory to another client's line.
pub const STALLED_LINE: Duration = Duration::from_secs(1);

// Hosts that speak a protocol of others: editors, and agents.

/// Commands for the daemon that wait before the host's input is not read on.
pub const WAITING_TRANSLATED_COMMANDS: usize = 64;

/// Bytes for the host that wait to be written before the daemon's lines are not read on.
pub const WAITING_HOST_BYTES: usize = 256 << 10;

/// The longest text of a file that is told as the old one of a change, in bytes.
pub const MAX_ACP_OLD_TEXT: u64 = 1 << 20;

/// The time after the end of the host's input for runs to end and the last answers to be written. Editors wait 2 s.
pub const HOST_EOF_GRACE: Duration = Duration::from_millis(1500);

/// The time between two notifications about the progress of a tool call of which there is nothing else to tell. Clients give up after
/// 60 s without any.
pub const MCP_HEARTBEAT: Duration = Duration::from_secs(15);

// Sessions.

/// Evicted sessions that are remembered by their id. Of more, an arbitrary one is dropped.
pub const MAX_EVICTED_SESSIONS: usize = 100_000;

/// Ids in one of the two generations of event numbers: about 2 MiB in all.
pub const EVENT_NUMBER_GENERATION: usize = 8_192;

/// Sessions of a page of `list_sessions` where the client does not say.
pub const DEFAULT_PAGE_SESSIONS: usize = 50;

/// Sessions of a page of `list_sessions` at most.
pub const MAX_PAGE_SESSIONS: usize = 1_000;

/// Unreadable session files that an answer names.
pub const MAX_UNREADABLE_FILES: usize = 100;

// Descriptors and threads.

/// With fewer descriptors the daemon does not start: it could not hold one session that runs one command.
pub const MIN_FILES: u64 = 32;

/// The number of descriptors that the error for fewer than [`MIN_FILES`] recommends.
pub const RECOMMENDED_FILES: u64 = 1024;

/// Descriptors that are kept for running work: its files, its connections to models, its processes. Of few descriptors, a quarter
/// is kept; of many, a tenth.
pub const RESERVED_FILES: u64 = 16;

/// Threads that run tasks. The work is waiting, moving lines and encoding; more threads would only cost memory.
pub const WORKER_THREADS: usize = 2;

/// Threads that wait for files: at least the first number, the second one where the address space has no limit.
pub const BLOCKING_THREADS: std::ops::RangeInclusive<u64> = 4..=512;

// Time to end.

/// The time for sessions to store the end of aborted work when the daemon ends.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// The time for clients to read their last lines when the daemon ends.
pub const LAST_LINES: Duration = Duration::from_secs(2);

/// The time for the last telemetry to reach its collector when the process ends.
pub const TELEMETRY_FLUSH: Duration = Duration::from_secs(2);

/// The same after a signal to `--stdio`.
pub const STDIO_TELEMETRY_FLUSH: Duration = Duration::from_millis(200);

/// The time for the session of `--stdio` to store the end of its run after a signal. Clients kill 1 s after SIGTERM.
pub const STDIO_SIGNAL_GRACE: Duration = Duration::from_millis(700);

/// The time after a signal for the session of `-p` to store the end of its run, and for its background processes to end.
pub const ONE_SHOT_SIGNAL_GRACE: Duration = Duration::from_secs(5);

/// The limits of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Sessions that it follows.
    pub followed: usize,
    /// Commands about the daemon and the set-up that are under way.
    pub pending: usize,
    /// Clients that may be connected, this one included; `None` where it is the only one.
    pub clients: Option<usize>,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { followed: DEFAULT_MAX_FOLLOWED_SESSIONS, pending: DEFAULT_MAX_PENDING_COMMANDS, clients: None }
    }
}
