//! What the user's settings say of the daemon itself.

use std::{path::Path, time::Duration};

use agentd_config::{AgentDir, Environment, settings::load_user};
use agentd_protocol::lines::DEFAULT_MAX_LINE_BYTES;
use agentd_session::{FeedLimits, Limits};

/// How long a session stays in memory with nothing to do.
const IDLE: Duration = Duration::from_secs(600);

/// Clients at the same time.
const MAX_CLIENTS: usize = 512;

/// Shorter lines could not be answered with a reason.
const MIN_LINE_BYTES: usize = 1 << 10;

/// How long work has to finish when the daemon ends.
const DEADLINE: Duration = Duration::from_secs(30);

/// The limits of a daemon.
#[derive(Debug, Clone, Copy)]
pub(super) struct DaemonLimits {
    /// What one session may keep.
    pub(super) session: Limits,
    /// The longest line that a client may send, in bytes.
    pub(super) max_line_bytes: usize,
    /// Clients at the same time. More wait until one leaves.
    pub(super) max_clients: usize,
    /// How long work has to finish when the daemon ends.
    pub(super) shutdown_deadline: Duration,
}

impl DaemonLimits {
    /// Reads the user's settings. What cannot be used is left out, and told when a session is opened.
    pub(super) fn load(environment: &Environment, compat: bool, cwd: &Path) -> Self {
        let settings = AgentDir::find(environment, compat, cwd).ok().map(|agent_dir| load_user(&agent_dir));
        let of = settings.and_then(|settings| settings.daemon).unwrap_or_default();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let feed = FeedLimits::default();
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
            },
            max_line_bytes: of.max_line_bytes.map_or(DEFAULT_MAX_LINE_BYTES, bytes).max(MIN_LINE_BYTES),
            max_clients: of.max_clients.map_or(MAX_CLIENTS, bytes).max(1),
            shutdown_deadline: of.shutdown_deadline_ms.map_or(DEADLINE, Duration::from_millis),
        }
    }

    /// Those of a private daemon, whose one session is there as long as its host.
    pub(super) fn private(self) -> Self {
        Self { session: Limits { idle_after: None, ..self.session }, ..self }
    }
}
