//! The request that the daemon end, by a signal or a client.

use std::time::Duration;

use agentd_protocol::daemon::EndMode;
use tokio::{sync::watch, time::Instant};

/// The mode and the deadline of the end of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownRequest {
    /// Whether work is finished or aborted.
    pub mode: EndMode,
    /// Until when work may finish.
    pub until: Instant,
}

impl ShutdownRequest {
    /// The time that work still has.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.mode {
            EndMode::Drain => self.until.saturating_duration_since(Instant::now()),
            EndMode::Abort => Duration::ZERO,
        }
    }
}

/// Takes the request, and wakes those who wait for it. A later request can make the end stricter or sooner, never milder or later.
#[derive(Debug, Clone)]
pub struct ShutdownSwitch(watch::Sender<Option<ShutdownRequest>>);

impl Default for ShutdownSwitch {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl ShutdownSwitch {
    /// Requests the end of the daemon. `deadline` is how long work has from now on; without one the deadline of an earlier request
    /// stays, and a first request gets `usual`.
    pub fn request(&self, mode: EndMode, deadline: Option<Duration>, usual: Duration) {
        // A year: the clock cannot count to every deadline that a client may send.
        const MAX_DEADLINE: Duration = Duration::from_secs(365 * 86_400);
        let from_now = |time: Duration| Instant::now() + time.min(MAX_DEADLINE);
        self.0.send_if_modified(|request| {
            let next = match *request {
                None => ShutdownRequest { mode, until: from_now(deadline.unwrap_or(usual)) },
                Some(before) => ShutdownRequest {
                    mode: if mode == EndMode::Abort { mode } else { before.mode },
                    until: deadline.map_or(before.until, |deadline| before.until.min(from_now(deadline))),
                },
            };
            request.replace(next) != Some(next)
        });
    }

    /// The request, if there is one.
    #[must_use]
    pub fn ending(&self) -> Option<ShutdownRequest> {
        *self.0.borrow()
    }

    /// Whether the daemon is to end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.ending().is_some()
    }

    /// Waits for a request. Cancel safe.
    pub async fn requested(&self) -> ShutdownRequest {
        self.changed_from(None).await
    }

    /// Waits for a request other than `known`. Cancel safe.
    pub async fn changed_from(&self, known: Option<ShutdownRequest>) -> ShutdownRequest {
        let mut requests = self.0.subscribe();
        loop {
            let now = *requests.borrow_and_update();
            if let Some(request) = now
                && now != known
            {
                return request;
            }
            // `self` holds the sender, so the channel is open.
            let _ = requests.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_later_request_is_stricter_or_sooner() {
        let switch = ShutdownSwitch::default();
        let waiting = tokio::spawn({
            let switch = switch.clone();
            async move { switch.requested().await }
        });
        assert!(!switch.is_requested());
        let seconds = |count| Some(Duration::from_secs(count));
        let check = |mode, deadline, expected_mode, expected_seconds| {
            switch.request(mode, deadline, USUAL);
            let ending = switch.ending().unwrap();
            let left = ending.until - Instant::now();
            assert_eq!((ending.mode, left.as_secs()), (expected_mode, expected_seconds));
        };
        check(EndMode::Drain, seconds(60), EndMode::Drain, 60);
        let first = waiting.await.unwrap();
        check(EndMode::Drain, None, EndMode::Drain, 60);
        check(EndMode::Drain, seconds(90), EndMode::Drain, 60);
        assert_eq!(switch.ending(), Some(first), "nothing has changed");
        check(EndMode::Drain, seconds(5), EndMode::Drain, 5);
        assert_ne!(switch.changed_from(Some(first)).await, first);
        check(EndMode::Abort, None, EndMode::Abort, 5);
        check(EndMode::Drain, seconds(90), EndMode::Abort, 5);
        assert_eq!(switch.ending().unwrap().remaining(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_the_usual_deadline() {
        let switch = ShutdownSwitch::default();
        switch.request(EndMode::Drain, None, USUAL);
        assert_eq!(switch.ending().unwrap().remaining(), USUAL);
        let switch = ShutdownSwitch::default();
        switch.request(EndMode::Drain, Some(Duration::MAX), USUAL);
        assert!(switch.ending().unwrap().remaining() > USUAL);
    }
}
