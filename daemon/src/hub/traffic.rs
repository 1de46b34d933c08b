//! Counts connections.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// The connections that there are and were.
#[derive(Debug, Default)]
pub struct Traffic {
    clients: AtomicU32,
    connections: AtomicU64,
}

/// Counts a connection for as long as it is there.
#[derive(Debug)]
pub struct ConnectionCount(Arc<Traffic>);

impl Traffic {
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
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(Arc::clone(self))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}
