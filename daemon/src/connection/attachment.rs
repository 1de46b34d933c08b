//! The sessions that a connection follows.

use std::{collections::HashMap, sync::Arc};

use agentd_session::{Abilities, Present, ReaderId};
use tokio_util::sync::CancellationToken;

use super::following::Pending;
use crate::hub::{ClientCount, Known};

/// A session that the connection follows.
pub(super) struct Attachment {
    /// Our name in its feed.
    pub(super) reader: ReaderId,
    pub(super) pending: Pending,
    pub(super) leaving: CancellationToken,
    pub(super) session: Arc<Known>,
    /// Counts us among the session's clients: until we leave, not until the last answer has come.
    pub(super) _count: ClientCount,
    /// While we answer what it asks its user.
    pub(super) present: Option<Present>,
}

/// All of them, and the current one.
#[derive(Default)]
pub(super) struct Attachments {
    followed: HashMap<Arc<str>, Attachment>,
    /// Where commands go that name no session. It need not be followed.
    pub(super) current: Option<Arc<Known>>,
}

impl Attachments {
    pub(super) fn get(&self, id: &str) -> Option<&Attachment> {
        self.followed.get(id)
    }

    pub(super) fn insert(&mut self, id: Arc<str>, attachment: Attachment) {
        self.followed.insert(id, attachment);
    }

    /// Follows a session no longer; answers that are under way still come.
    pub(super) fn leave(&mut self, id: &str) -> Option<Attachment> {
        let attachment = self.followed.remove(id)?;
        attachment.leaving.cancel();
        Some(attachment)
    }

    /// Those that are followed.
    pub(super) fn all(&self) -> Vec<Arc<Known>> {
        self.followed.values().map(|attachment| Arc::clone(&attachment.session)).collect()
    }

    /// From here on we answer so much of what they ask.
    pub(super) fn answer(&mut self, abilities: Option<Abilities>) {
        for attachment in self.followed.values_mut() {
            attachment.present = abilities.map(|abilities| attachment.session.feed().enter(abilities));
        }
    }

    pub(super) fn leave_all(&mut self) {
        for (_, attachment) in self.followed.drain() {
            attachment.leaving.cancel();
        }
    }
}
