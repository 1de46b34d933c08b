//! Messages in the intent log of a session that is the project's, or lies outside of the agent directory: they wait only when the user says so.

use agentd_store::intent_log::QueuedRecord;

use super::Origin;

/// The messages, until the user has decided.
#[derive(Default)]
pub(crate) struct HeldMessages {
    pub(crate) messages: Vec<QueuedRecord>,
    /// Decides whether messages that are found later are held back, too.
    pub(crate) origin: Origin,
    /// Somebody was asked.
    pub(crate) asked: bool,
}

impl HeldMessages {
    pub(crate) fn new(messages: Vec<QueuedRecord>, origin: Origin) -> Self {
        Self { messages, origin, asked: false }
    }

    /// Keeps these where they are to be held back; gives them back where they are to wait at once.
    pub(crate) fn take_in(&mut self, messages: Vec<QueuedRecord>) -> Vec<QueuedRecord> {
        if self.origin == Origin::User {
            return messages;
        }
        self.messages = messages;
        Vec::new()
    }

    /// The messages.
    pub(crate) fn messages(&self) -> &[QueuedRecord] {
        &self.messages
    }

    /// Nothing comes of them any more; true when there were some.
    pub(crate) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.messages).is_empty()
    }
}
