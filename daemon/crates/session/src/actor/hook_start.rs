//! The shell hooks that run when a session begins.

use tokio_util::sync::CancellationToken;

/// The hooks for the beginning of the session.
#[derive(Default)]
pub(super) struct HookStart {
    /// Fires once they have ended; `None` where there are none.
    pub(super) started: Option<CancellationToken>,
    /// Gives up these, and those that nobody waits for.
    cancel: Option<CancellationToken>,
}

impl HookStart {
    /// Fires when the session is closed.
    pub(super) fn cancel(&mut self) -> CancellationToken {
        self.cancel.get_or_insert_default().clone()
    }

    /// Gives up what runs.
    pub(super) fn give_up(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }
}
