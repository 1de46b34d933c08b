//! Counts connections.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// The connections that there are and were.
#[derive(Debug, Default)]
pub struct ConnectionStats {
    clients: AtomicU32,
    connections: AtomicU64,
}

/// Counts a connection for as long as it is there.
#[derive(Debug)]
pub struct ConnectionCount {
    traffic: Arc<ConnectionStats>,
    number: u64,
}

impl ConnectionCount {
    /// Which connection of the daemon's life it is, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl ConnectionStats {
    /// Connections that there are.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    /// Connections that there were.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn enter(self: &Arc<Self>) -> ConnectionCount {
        self.clients.fetch_add(1, Ordering::Relaxed);
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        ConnectionCount { traffic: Arc::clone(self), number }
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.traffic.clients.fetch_sub(1, Ordering::Relaxed);
    }
}
