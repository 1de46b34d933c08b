//! A wish that the daemon end, from wherever it comes.

use std::time::Duration;

use agentd_protocol::daemon::EndMode;
use tokio::sync::watch;

/// How the daemon is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// What becomes of work.
    pub mode: EndMode,
    /// How long it has.
    pub deadline: Duration,
}

/// Where the wish is put, and waited for. The first one counts.
#[derive(Debug, Clone)]
pub struct ShutdownSwitch(watch::Sender<Option<Ending>>);

impl Default for ShutdownSwitch {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl ShutdownSwitch {
    /// Asks the daemon to end.
    pub fn put(&self, ending: Ending) {
        self.0.send_if_modified(|wish| {
            let first = wish.is_none();
            wish.get_or_insert(ending);
            first
        });
    }

    /// Whether the daemon was asked to end.
    #[must_use]
    pub fn is_wished(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for the wish. Cancel safe.
    pub async fn wished(&self) -> Ending {
        let mut wish = self.0.subscribe();
        loop {
            if let Some(ending) = *wish.borrow_and_update() {
                return ending;
            }
            // The sender is ours: it cannot be gone.
            let _ = wish.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_wish_counts() {
        let switch = ShutdownSwitch::default();
        let waiting = tokio::spawn({
            let switch = switch.clone();
            async move { switch.wished().await }
        });
        let first = Ending { mode: EndMode::Drain, deadline: Duration::from_secs(30) };
        assert!(!switch.is_wished());
        switch.put(first);
        switch.put(Ending { mode: EndMode::Abort, deadline: Duration::ZERO });
        assert_eq!((waiting.await.unwrap(), switch.wished().await), (first, first));
        assert!(switch.is_wished());
    }
}
