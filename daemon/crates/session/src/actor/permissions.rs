//! Permissions: changed by commands; decisions about calls, stored and then told.

use std::sync::Arc;

use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::Event,
    permissions::{PermissionsChanged, SetPermissionsParams},
    session::PermissionState,
    settings::PermissionSettings,
};

use super::session_actor::Actor;
use crate::{
    message_sender::MessageSender,
    permissions::{RecordDecision, changed},
    reply::Reply,
    run::RunMessage,
};

impl Actor {
    /// Connects the permissions with the session's user and file.
    pub(super) fn connect_permissions(&self) {
        let decisions = MessageSender::new(&self.to_actor, |record| RunMessage::Decided(Box::new(record)));
        self.context.permissions.connect(self.ui(), decisions);
    }

    /// The change counts at once, also when it cannot be stored; that is then said.
    pub(super) async fn set_permissions(&mut self, params: SetPermissionsParams, reply: Reply) {
        let result = self.try_set_permissions(params).await;
        reply.result(&self.feed, result);
    }

    async fn try_set_permissions(
        &mut self,
        params: SetPermissionsParams,
    ) -> Result<PermissionState, Failure> {
        let client = params.client.clone();
        let changes = params.changes();
        if changes == PermissionSettings::default() {
            return Ok(self.context.permissions.full_state());
        }
        let (gate, asked) = (Arc::clone(&self.context.permissions), changes.clone());
        let compiled = tokio::task::spawn_blocking(move || gate.change(&asked)).await;
        let compiled = compiled.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        let permissions = compiled.map_err(|error| {
            let text =
                format!("Invalid field \"rules\": rule {}: {} {}", error.number, error.field, error.problem);
            Failure::new(ErrorCode::InvalidField, text)
        })?;
        let stored = self.journal.append(&changed(&changes, &client)).await;
        self.publish_to_introduced(&Event::from(PermissionsChanged {
            permissions: permissions.clone(),
            by: client,
        }));
        stored.map(|()| permissions)
    }

    /// Stores a decision, then tells it. One that the disk does not take is told all the same: nothing is denied in silence.
    pub(super) async fn on_decided(&mut self, record: RecordDecision) {
        let stored = self.journal.append(&record.entry()).await;
        if let Err(failure) = &stored {
            tracing::error!(error = failure.error, "a decision about a call could not be stored");
        }
        // For pi's clients, too: a session without permissions has no such event.
        let event = Event::from(record.decision);
        self.context.observe(&event);
        self.publish(&event);
        // The call may have been stopped.
        let _ = record.stored.send(stored.is_ok());
    }
}
