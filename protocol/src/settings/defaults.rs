//! Defaults of the daemon's limits, for the settings' schema and for the daemon.

/// The most clients at a time: `daemon.maxClients`.
pub const DEFAULT_MAX_CLIENTS: usize = 512;

/// The most sessions in the registry: `daemon.maxSessions`.
pub const DEFAULT_MAX_SESSIONS: usize = 10_000;

/// The most sessions that one client follows: `daemon.maxFollowedSessions`.
pub const DEFAULT_MAX_FOLLOWED_SESSIONS: usize = 1000;

/// The most background commands of one client: `daemon.maxPendingCommands`.
pub const DEFAULT_MAX_PENDING_COMMANDS: usize = 64;

/// The most memory of the daemon in bytes (2 GiB), and at most a quarter of the machine's memory: `daemon.maxMemoryBytes`.
pub const DEFAULT_MAX_MEMORY_BYTES: u64 = 2 << 30;

/// The most commands of all sessions at a time: `daemon.maxCommands`.
pub const DEFAULT_MAX_COMMANDS: usize = 1024;
