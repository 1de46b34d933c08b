//! What the user's settings say of the daemon itself.

use std::{path::Path, time::Duration};

use agentd_config::{AgentDir, Environment, settings::load_user};
use agentd_memory::{AddressSpace, MemoryAccount};
use agentd_process::OutputRetention;
use agentd_protocol::{
    lines::DEFAULT_MAX_LINE_BYTES,
    settings::{DaemonSettings, LimitSettings, StorageSettings},
};
use agentd_session::{FeedLimits, IntakeLimits, Limits};

use crate::{connection::ClientLimits, hub::ResourceLimits};

/// How long a session stays in memory with nothing to do.
const IDLE: Duration = Duration::from_secs(600);

/// Clients at the same time.
const MAX_CLIENTS: usize = 512;

/// Sessions that are known at the same time.
const MAX_SESSIONS: usize = 10_000;

/// Commands of all sessions that run at the same time.
const MAX_COMMANDS: usize = 1024;

/// Memory, and at most a quarter of the machine's.
const MAX_MEMORY_BYTES: u64 = 2 << 30;

/// What long outputs of all sessions take together.
const MAX_ARTIFACT_BYTES: u64 = 10 << 30;

/// How long they are kept.
const MAX_ARTIFACT_AGE_DAYS: u64 = 90;

/// How long a client may pause in a line.
const LINE_IDLE: Duration = Duration::from_secs(60);

/// Shorter lines could not be answered with a reason.
const MIN_LINE_BYTES: usize = 1 << 10;

/// How long work has to finish when the daemon ends.
const DEADLINE: Duration = Duration::from_secs(30);

/// The limits of a daemon.
#[derive(Debug, Clone, Copy)]
pub(super) struct DaemonLimits {
    /// What one session may keep.
    pub(super) session: Limits,
    /// What one client may have.
    pub(super) client: ClientLimits,
    /// What all sessions may take together.
    pub(super) resources: ResourceLimits,
    /// What long outputs may take of the disk.
    pub(super) outputs: OutputRetention,
    /// Commands of all sessions that may run at the same time.
    pub(super) max_commands: usize,
    /// The longest line that a client may send, in bytes.
    pub(super) max_line_bytes: usize,
    /// How long a client may pause in a line that it has begun; `None`: as long as it likes.
    pub(super) line_idle: Option<Duration>,
    /// Clients at the same time. The next one is told so, and left.
    pub(super) max_clients: usize,
    /// How long work has to finish when the daemon ends.
    pub(super) shutdown_deadline: Duration,
}

impl DaemonLimits {
    /// Reads the user's settings. What cannot be used is left out, and told when a session is opened.
    pub(super) fn load(environment: &Environment, compat: bool, cwd: &Path) -> Self {
        let settings = AgentDir::find(environment, compat, cwd).ok().map(|agent_dir| load_user(&agent_dir));
        let settings = settings.unwrap_or_default();
        Self::of(
            settings.daemon.unwrap_or_default(),
            settings.limits.unwrap_or_default(),
            settings.storage.unwrap_or_default(),
        )
    }

    fn of(of: DaemonSettings, limits: LimitSettings, storage: StorageSettings) -> Self {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (feed, intake) = (FeedLimits::default(), IntakeLimits::default());
        let max_clients = of.max_clients.map_or(MAX_CLIENTS, bytes).max(1);
        let idle = of.idle_unload_ms.map_or(IDLE, Duration::from_millis);
        Self {
            session: Limits {
                feed: FeedLimits {
                    outbox_bytes: of.outbox_bytes.map_or(feed.outbox_bytes, bytes),
                    replay_bytes: of.replay_bytes.map_or(feed.replay_bytes, bytes),
                    grace: of.lag_grace_ms.map_or(feed.grace, Duration::from_millis),
                },
                idle_after: (!idle.is_zero()).then_some(idle),
                ui_timeout: of.ui_timeout_ms.map_or(Limits::default().ui_timeout, Duration::from_millis),
                intake: IntakeLimits {
                    message_bytes: limit(limits.max_message_bytes, intake.message_bytes),
                    queued_messages: limit(limits.max_queued_messages, intake.queued_messages),
                    queued_bytes: limit(limits.max_queued_bytes, intake.queued_bytes),
                    session_bytes: limit(limits.max_session_bytes, intake.session_bytes),
                },
                output_bytes: limit(storage.max_output_bytes, Limits::default().output_bytes),
            },
            client: ClientLimits {
                followed: count(of.max_followed_sessions, ClientLimits::default().followed),
                pending: count(of.max_pending_commands, ClientLimits::default().pending),
                clients: Some(max_clients),
            },
            resources: ResourceLimits {
                sessions: count(of.max_sessions, MAX_SESSIONS),
                memory_bytes: limit(of.max_memory_bytes, default_memory()),
                keeps_files: true,
            },
            outputs: OutputRetention {
                bytes: limit(storage.max_artifact_bytes, MAX_ARTIFACT_BYTES),
                age: days(storage.max_artifact_age_days.unwrap_or(MAX_ARTIFACT_AGE_DAYS)),
            },
            max_commands: count(of.max_commands, MAX_COMMANDS),
            max_line_bytes: of.max_line_bytes.map_or(DEFAULT_MAX_LINE_BYTES, bytes).max(MIN_LINE_BYTES),
            line_idle: millis(of.line_idle_ms, LINE_IDLE),
            max_clients,
            shutdown_deadline: of.shutdown_deadline_ms.map_or(DEADLINE, Duration::from_millis),
        }
    }

    /// The account of what is taken in, within the memory and the address space that there may be. Opens a file where the address
    /// space has a limit.
    pub(super) fn memory(&self) -> MemoryAccount {
        MemoryAccount::new(self.resources.memory_bytes, AddressSpace::of_this_process())
    }

    /// Those of a private daemon, which has one client. What that opened stays open, so that nobody else takes its files, as long as
    /// there is memory.
    pub(super) fn private(self) -> Self {
        Self {
            session: Limits { idle_after: None, ..self.session },
            client: ClientLimits { clients: None, ..self.client },
            line_idle: None,
            ..self
        }
    }
}

/// 0 is no limit.
fn limit(setting: Option<u64>, default: u64) -> u64 {
    match setting {
        None => default,
        Some(0) => u64::MAX,
        Some(limit) => limit,
    }
}

/// 0 is no limit.
fn millis(setting: Option<u64>, default: Duration) -> Option<Duration> {
    let limit = setting.map_or(default, Duration::from_millis);
    (!limit.is_zero()).then_some(limit)
}

fn count(setting: Option<u64>, default: usize) -> usize {
    usize::try_from(limit(setting, default as u64)).unwrap_or(usize::MAX)
}

/// How many days a file may be old; none is no limit.
fn days(days: u64) -> Option<Duration> {
    (days > 0).then(|| Duration::from_secs(days.saturating_mul(86_400)))
}

/// A quarter of the machine's memory where that is less than the usual limit.
fn default_memory() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    machine.map_or(MAX_MEMORY_BYTES, |machine| MAX_MEMORY_BYTES.min(machine / 4))
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
    fn zero_is_no_limit_and_nothing_is_the_default() {
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
    fn the_machine_says_how_much_memory_it_has() {
        assert_eq!(total_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16_384));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert!(default_memory() > 0 && default_memory() <= MAX_MEMORY_BYTES);
    }
}
