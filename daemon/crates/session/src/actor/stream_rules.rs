//! Rules on the stream, on record: which the model was told on this branch.

use agentd_agent::{HostError, queue::QueueKind};
use agentd_protocol::message::CustomMessage;

use super::session_actor::Actor;
use crate::{
    extensions::CustomDelivery,
    stream_rules::{rules_entry, told_on},
};

impl Actor {
    /// Makes what the model was told of rules what the branch says.
    pub(super) fn restore_rules(&self) {
        self.context.stream_rules.restore(told_on(self.journal.tree()));
    }

    /// The model is told of rules: now, or by a message that follows its answer.
    pub(super) async fn on_rules_told(
        &mut self,
        rules: Vec<String>,
        follow_up: Option<Box<CustomMessage>>,
    ) -> Result<(), HostError> {
        let stored = self.journal.append(&rules_entry(&rules)).await;
        stored.map_err(|failure| HostError::NotStored(failure.error))?;
        self.tell_extensions();
        if let Some(message) = follow_up
            && !self.custom.push(CustomDelivery::Queued(QueueKind::FollowUp), *message)
        {
            tracing::warn!("too many messages wait: the model is not told of a rule");
        }
        Ok(())
    }
}
