//! Decisions about calls: stored, then told.

use agentd_protocol::event::Event;

use super::session_actor::Actor;
use crate::{message_sender::MessageSender, permissions::RecordDecision, run::RunMessage};

impl Actor {
    /// Connects the permissions with the session's user and file, if the session has some.
    pub(super) fn connect_permissions(&self) {
        if let Some(permissions) = &self.context.permissions {
            let decisions =
                MessageSender::new(&self.to_actor, |record| RunMessage::Decided(Box::new(record)));
            permissions.connect(self.ui(), decisions);
        }
    }

    /// Stores a decision, then tells it. One that the disk does not take is told all the same: nothing is denied in silence.
    pub(super) async fn on_decided(&mut self, record: RecordDecision) {
        let stored = self.journal.append(&record.entry()).await;
        if let Err(failure) = &stored {
            tracing::error!(error = failure.error, "a decision about a call could not be stored");
        }
        // For pi's clients, too: a session without permissions has no such event.
        self.publish(&Event::from(record.decision));
        // The call may have been stopped.
        let _ = record.stored.send(stored.is_ok());
    }
}
