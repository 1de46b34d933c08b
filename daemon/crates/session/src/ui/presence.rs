//! Whether anybody is there who could answer.

use std::sync::Arc;

use tokio::sync::watch;

use super::dialog::Asker;

/// Whose questions a client answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiAbilities {
    /// Those of extensions: a client of the plain wire.
    Extensions,
    /// Those of the daemon, too.
    All,
}

impl UiAbilities {
    /// Whether such a client answers what `asker` asks.
    pub(crate) fn answer(self, asker: Asker) -> bool {
        self == Self::All || asker == Asker::Extension
    }
}

/// Counts the subscribers of a session that answer questions.
#[derive(Debug, Clone)]
pub(crate) struct Presence(Arc<watch::Sender<Counts>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    extensions: usize,
    all: usize,
}

impl Counts {
    fn of(&mut self, abilities: UiAbilities) -> &mut usize {
        match abilities {
            UiAbilities::Extensions => &mut self.extensions,
            UiAbilities::All => &mut self.all,
        }
    }

    fn can_answer(self, asker: Asker) -> bool {
        match asker {
            Asker::Daemon => self.all > 0,
            Asker::Extension => self.all + self.extensions > 0,
        }
    }
}

/// Somebody who answers, for as long as this is there.
#[derive(Debug)]
pub struct PresenceGuard(Presence, UiAbilities);

impl Default for Presence {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Counts::default())))
    }
}

impl Presence {
    /// Counts somebody who answers.
    pub(crate) fn enter(&self, abilities: UiAbilities) -> PresenceGuard {
        self.0.send_modify(|counts| *counts.of(abilities) += 1);
        PresenceGuard(self.clone(), abilities)
    }

    /// Whether somebody can answer `asker`.
    pub(crate) fn is_there(&self, asker: Asker) -> bool {
        self.0.borrow().can_answer(asker)
    }

    /// Waits until somebody can answer `asker`, or until nobody can. Cancel safe.
    pub(crate) async fn until(&self, asker: Asker, is_there: bool) {
        let mut changes = self.0.subscribe();
        // It fails only when the sender is gone, and we hold it.
        let _ = changes.wait_for(|counts| counts.can_answer(asker) == is_there).await;
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| *counts.of(self.1) -= 1);
    }
}
