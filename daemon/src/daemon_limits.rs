//! The limits of a daemon: the defaults of [`limits`](crate::limits) with the user's settings applied.

use std::{path::Path, time::Duration};

use agentd_config::{AgentDir, Environment, settings::load_user};
use agentd_memory::{AddressSpace, MemoryAccount};
use agentd_process::OutputRetention;
use agentd_protocol::{
    lines::DEFAULT_MAX_LINE_BYTES,
    settings::{DaemonSettings, LimitSettings, StorageSettings},
};
use agentd_session::{FeedLimits, IntakeLimits, Limits};

use crate::{
    hub::ResourceLimits,
    limits::{
        ClientLimits, DEFAULT_IDLE_UNLOAD, DEFAULT_LINE_IDLE, DEFAULT_MAX_ARTIFACT_AGE_DAYS,
        DEFAULT_MAX_ARTIFACT_BYTES, DEFAULT_MAX_CLIENTS, DEFAULT_MAX_COMMANDS, DEFAULT_MAX_MEMORY_BYTES,
        DEFAULT_MAX_SESSIONS, DEFAULT_SHUTDOWN_DEADLINE, MIN_LINE_BYTES,
    },
};

/// The limits of a daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaemonLimits {
    /// The limits of one session.
    pub(crate) session: Limits,
    /// The limits of one client.
    pub(crate) client: ClientLimits,
    /// The limits of all sessions together.
    pub(crate) resources: ResourceLimits,
    /// The limits of long outputs on disk.
    pub(crate) outputs: OutputRetention,
    /// Commands of all sessions that may run at the same time.
    pub(crate) max_commands: usize,
    /// The longest line that a client may send, in bytes.
    pub(crate) max_line_bytes: usize,
    /// The longest pause of a client within a line; `None`: as long as it likes.
    pub(crate) line_idle: Option<Duration>,
    /// Clients at the same time. The next one is told so and left.
    pub(crate) max_clients: usize,
    /// The time for work to finish when the daemon ends.
    pub(crate) shutdown_deadline: Duration,
}

impl DaemonLimits {
    /// Reads the user's settings. Unusable ones are ignored here; opening a session reports them.
    pub(crate) fn load(environment: &Environment, compat: bool, cwd: &Path) -> Self {
        let settings = AgentDir::find(environment, compat, cwd).ok().map(|agent_dir| load_user(&agent_dir));
        let settings = settings.unwrap_or_default();
        Self::of(
            settings.daemon.unwrap_or_default(),
            settings.limits.unwrap_or_default(),
            settings.storage.unwrap_or_default(),
        )
    }

    fn of(daemon: DaemonSettings, limits: LimitSettings, storage: StorageSettings) -> Self {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (feed, intake) = (FeedLimits::default(), IntakeLimits::default());
        let max_clients = daemon.max_clients.map_or(DEFAULT_MAX_CLIENTS, bytes).max(1);
        let idle = daemon.idle_unload_ms.map_or(DEFAULT_IDLE_UNLOAD, Duration::from_millis);
        Self {
            session: Limits {
                feed: FeedLimits {
                    outbox_bytes: daemon.outbox_bytes.map_or(feed.outbox_bytes, bytes),
                    replay_bytes: daemon.replay_bytes.map_or(feed.replay_bytes, bytes),
                    grace: daemon.lag_grace_ms.map_or(feed.grace, Duration::from_millis),
                },
                idle_after: (!idle.is_zero()).then_some(idle),
                ui_timeout: daemon.ui_timeout_ms.map_or(Limits::default().ui_timeout, Duration::from_millis),
                intake: IntakeLimits {
                    message_bytes: limit(limits.max_message_bytes, intake.message_bytes),
                    queued_messages: limit(limits.max_queued_messages, intake.queued_messages),
                    queued_bytes: limit(limits.max_queued_bytes, intake.queued_bytes),
                    session_bytes: limit(limits.max_session_bytes, intake.session_bytes),
                },
                output_bytes: limit(storage.max_output_bytes, Limits::default().output_bytes),
            },
            client: ClientLimits {
                followed: count(daemon.max_followed_sessions, ClientLimits::default().followed),
                pending: count(daemon.max_pending_commands, ClientLimits::default().pending),
                clients: Some(max_clients),
            },
            resources: ResourceLimits {
                sessions: count(daemon.max_sessions, DEFAULT_MAX_SESSIONS),
                memory_bytes: limit(daemon.max_memory_bytes, default_memory()),
                keeps_files: true,
            },
            outputs: OutputRetention {
                bytes: limit(storage.max_artifact_bytes, DEFAULT_MAX_ARTIFACT_BYTES),
                age: days(storage.max_artifact_age_days.unwrap_or(DEFAULT_MAX_ARTIFACT_AGE_DAYS)),
            },
            max_commands: count(daemon.max_commands, DEFAULT_MAX_COMMANDS),
            max_line_bytes: daemon.max_line_bytes.map_or(DEFAULT_MAX_LINE_BYTES, bytes).max(MIN_LINE_BYTES),
            line_idle: millis(daemon.line_idle_ms, DEFAULT_LINE_IDLE),
            max_clients,
            shutdown_deadline: daemon
                .shutdown_deadline_ms
                .map_or(DEFAULT_SHUTDOWN_DEADLINE, Duration::from_millis),
        }
    }

    /// The account that everything incoming is charged to, limited by memory and address space. Opens a file where the address
    /// space has a limit.
    pub(crate) fn memory(&self) -> MemoryAccount {
        MemoryAccount::new(self.resources.memory_bytes, AddressSpace::of_this_process())
    }

    /// The limits of a private daemon, which has one client. Its idle sessions stay loaded while there is memory, so that no other
    /// process takes their files.
    pub(crate) fn private(self) -> Self {
        Self {
            session: Limits { idle_after: None, ..self.session },
            client: ClientLimits { clients: None, ..self.client },
            line_idle: None,
            ..self
        }
    }
}

/// Pure. 0 is no limit.
fn limit(setting: Option<u64>, default: u64) -> u64 {
    match setting {
        None => default,
        Some(0) => u64::MAX,
        Some(limit) => limit,
    }
}

/// Pure. 0 is no limit.
fn millis(setting: Option<u64>, default: Duration) -> Option<Duration> {
    let limit = setting.map_or(default, Duration::from_millis);
    (!limit.is_zero()).then_some(limit)
}

fn count(setting: Option<u64>, default: usize) -> usize {
    usize::try_from(limit(setting, default as u64)).unwrap_or(usize::MAX)
}

/// Pure. 0 is no limit.
pub(crate) fn days(days: u64) -> Option<Duration> {
    (days > 0).then(|| Duration::from_secs(days.saturating_mul(86_400)))
}

/// [`DEFAULT_MAX_MEMORY_BYTES`], or a quarter of the machine's memory where that is less.
fn default_memory() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    machine.map_or(DEFAULT_MAX_MEMORY_BYTES, |machine| DEFAULT_MAX_MEMORY_BYTES.min(machine / 4))
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_no_limit_and_no_setting_is_the_default() {
        let of = DaemonSettings { max_sessions: Some(0), max_commands: Some(3), ..DaemonSettings::default() };
        let limits = LimitSettings { max_message_bytes: Some(0), ..LimitSettings::default() };
        let limits = DaemonLimits::of(of, limits, StorageSettings::default());
        assert_eq!((limits.resources.sessions, limits.max_commands), (usize::MAX, 3));
        let intake = IntakeLimits { message_bytes: u64::MAX, ..IntakeLimits::default() };
        assert_eq!(limits.session.intake, intake);
        assert_eq!(limits.outputs.age, Some(Duration::from_secs(90 * 86_400)));
        assert_eq!(limits.private().client.clients, None);
    }

    #[test]
    fn defaults_are_those_of_the_schema() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../schemas/settings.json")).unwrap();
        let check = |group: &str, name: &str, default: u64| {
            let named = &schema["$defs"][group]["properties"][name]["default"];
            assert_eq!(named.as_u64(), Some(default), "{name}");
        };
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        let client = ClientLimits::default();
        check("DaemonSettings", "idleUnloadMs", millis(DEFAULT_IDLE_UNLOAD));
        check("DaemonSettings", "shutdownDeadlineMs", millis(DEFAULT_SHUTDOWN_DEADLINE));
        check("DaemonSettings", "lineIdleMs", millis(DEFAULT_LINE_IDLE));
        check("DaemonSettings", "maxLineBytes", DEFAULT_MAX_LINE_BYTES as u64);
        check("DaemonSettings", "maxClients", DEFAULT_MAX_CLIENTS as u64);
        check("DaemonSettings", "maxSessions", DEFAULT_MAX_SESSIONS as u64);
        check("DaemonSettings", "maxFollowedSessions", client.followed as u64);
        check("DaemonSettings", "maxPendingCommands", client.pending as u64);
        check("DaemonSettings", "maxMemoryBytes", DEFAULT_MAX_MEMORY_BYTES);
        check("DaemonSettings", "maxCommands", DEFAULT_MAX_COMMANDS as u64);
        check("DaemonSettings", "uiTimeoutMs", millis(Limits::default().ui_timeout));
        check("DaemonSettings", "outboxBytes", FeedLimits::default().outbox_bytes as u64);
        check("DaemonSettings", "replayBytes", FeedLimits::default().replay_bytes as u64);
        check("DaemonSettings", "lagGraceMs", millis(FeedLimits::default().grace));
        check("StorageSettings", "maxArtifactBytes", DEFAULT_MAX_ARTIFACT_BYTES);
        check("StorageSettings", "maxArtifactAgeDays", DEFAULT_MAX_ARTIFACT_AGE_DAYS);
        check("StorageSettings", "maxOutputBytes", Limits::default().output_bytes);
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16_384));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert!(default_memory() > 0 && default_memory() <= DEFAULT_MAX_MEMORY_BYTES);
    }
}
