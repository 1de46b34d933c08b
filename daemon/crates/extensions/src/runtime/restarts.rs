//! Starting hosts again that have ended by themselves.

use std::{
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};

use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::Runtime;
use crate::event::EventKind;

/// Pauses before a host that has ended is started again.
const RESTART_PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];

/// The span in which a host may be started again so often.
const RESTART_SPAN: Duration = Duration::from_secs(300);

impl Runtime {
    /// Starts a host again that has ended by itself, with its extensions, between turns. One whose extensions cannot be loaded is tried again.
    pub(super) async fn restart(&self, host: usize) {
        let slot = &self.hosts[host];
        while let Some(pause) = self.restart_pause() {
            sleep(pause).await;
            let (reached, between_turns) = oneshot::channel();
            let Some(session) = self.session() else { return };
            session.between_turns(reached);
            drop(session);
            if between_turns.await.is_err() || self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            slot.next_epoch();
            self.missing_gates.are_gone(host, self.gates_of(host));
            slot.extensions.iter().for_each(|extension| self.discard(*extension));
            if let Err(error) = self.load(host, "reload", false).await {
                self.failed(error.path, "load", error.reason);
                slot.shut_down().await;
                continue;
            }
            // What ends from here on is started again.
            slot.is_restarting.store(false, Ordering::Relaxed);
            self.bind(host).await;
            self.missing_gates.are_back(host);
            self.update_events(&self.registrations());
            return self.go_on(host).await;
        }
        slot.is_restarting.store(false, Ordering::Relaxed);
        let error = "The extension host ended again and again, and is not started any more. Reload the session's extensions to try again.";
        self.failed("<host>".to_owned(), "host_exit", error.to_owned());
    }

    /// The pause before the next start of a host; `None` once there were too many.
    fn restart_pause(&self) -> Option<Duration> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        restarts.retain(|at| at.elapsed() < RESTART_SPAN);
        let pause = RESTART_PAUSES.get(restarts.len()).copied();
        restarts.push(Instant::now());
        pause
    }

    /// The extensions of a host that was started again go on.
    async fn go_on(&self, host: usize) {
        if let Some(session) = self.session() {
            session.tools_changed();
            session.models_changed();
        }
        let extensions = &self.hosts[host].extensions;
        let handlers = self.registrations().handlers(EventKind::SessionStart);
        for handler in handlers.into_iter().filter(|handler| extensions.contains(&handler.extension)) {
            let event = json!({"type": "session_start", "reason": "reload"});
            self.notify_handlers(EventKind::SessionStart, &[handler], &event).await;
        }
    }
}
