//! The state that all connections of a daemon share, and the statistics of its connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{FairScheduler, SessionRegistry};

/// The state that all connections of a daemon share. A daemon of one host (`--stdio`) has one, too.
pub struct DaemonContext {
    /// The sessions.
    pub sessions: Arc<SessionRegistry>,
    /// Decides whose command is taken next.
    pub scheduler: FairScheduler,
    /// The open and former connections.
    pub connections: Arc<ConnectionStats>,
    started: Instant,
}

impl DaemonContext {
    /// A daemon that starts now, without any connection.
    #[must_use]
    pub fn new(sessions: Arc<SessionRegistry>) -> Arc<Self> {
        Arc::new(Self {
            sessions,
            scheduler: FairScheduler::default(),
            connections: Arc::default(),
            started: Instant::now(),
        })
    }

    /// The time since the start of the daemon.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Counts the open connections and all connections since the start.
#[derive(Debug, Default)]
pub struct ConnectionStats {
    open: AtomicU32,
    total: AtomicU64,
    lagged: AtomicU64,
}

impl ConnectionStats {
    /// The number of open connections.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// The number of connections since the start, the open ones included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// How often a client that did not keep up with a session was cut off from its events, since the start.
    #[must_use]
    pub fn lagged(&self) -> u64 {
        self.lagged.load(Ordering::Relaxed)
    }

    /// Counts a client that was cut off from the events of a session.
    pub fn count_lagged(&self) {
        self.lagged.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts another connection, which is open until the count is dropped.
    #[must_use]
    pub fn count_connection(self: &Arc<Self>) -> ConnectionCount {
        self.open.fetch_add(1, Ordering::Relaxed);
        let number = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        ConnectionCount { stats: Arc::clone(self), number }
    }
}

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub struct ConnectionCount {
    stats: Arc<ConnectionStats>,
    number: u64,
}

impl ConnectionCount {
    /// The connections among which it is counted.
    #[must_use]
    pub fn stats(&self) -> &Arc<ConnectionStats> {
        &self.stats
    }

    /// The number of the connection in this run of the daemon, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.stats.open.fetch_sub(1, Ordering::Relaxed);
    }
}
