//! The sessions that a connection follows.

use std::{collections::HashMap, sync::Arc};

use agentd_session::{PresenceGuard, SubscriberId, ToolProvider, UiAbilities};
use tokio_util::sync::CancellationToken;

use super::following::Pending;
use crate::hub::{ClientCount, SessionSlot};

/// A session that the connection follows.
pub(super) struct Attachment {
    /// Our name in its feed.
    pub(super) reader: SubscriberId,
    pub(super) pending: Pending,
    pub(super) leaving: CancellationToken,
    pub(super) session: Arc<SessionSlot>,
    /// Counts us among the session's clients: until we leave, not until the last answer has come.
    pub(super) _count: ClientCount,
    /// While we answer what it asks its user.
    pub(super) present: Option<PresenceGuard>,
    /// While we provide tools for it.
    pub(super) tools: Option<ToolProvider>,
}

impl Attachment {
    /// Whether it is this session that is followed, not one that had its id before.
    pub(super) fn is_to(&self, session: &SessionSlot) -> bool {
        std::ptr::eq(&*self.session, session)
    }

    /// Ends it, while the client is still there.
    pub(super) fn leave(self) {
        self.leaving.cancel();
        if let Some(tools) = self.tools {
            tools.leave();
        }
    }
}

/// How many are followed before those that have ended are looked for.
const FEW: usize = 16;

/// All of them, and the current one.
#[derive(Default)]
pub(super) struct Attachments {
    followed: HashMap<Arc<str>, Attachment>,
    /// With so many, those that have ended are let go.
    many: usize,
    /// Where commands go that name no session. It need not be followed.
    pub(super) current: Option<Arc<SessionSlot>>,
}

impl Attachments {
    /// Whether as many are followed as may be. Those that have ended do not count.
    pub(super) fn are_full(&mut self, limit: usize) -> bool {
        if self.followed.len() >= limit {
            self.let_go_of_ended();
        }
        self.followed.len() >= limit
    }

    fn let_go_of_ended(&mut self) {
        self.followed.retain(|_, attachment| !attachment.session.has_ended());
    }

    /// How a session is followed. Another one of that id, which has ended since, is not it.
    pub(super) fn get(&self, session: &SessionSlot) -> Option<&Attachment> {
        self.followed.get(&**session.id()).filter(|attachment| attachment.is_to(session))
    }

    /// Whether a session of that id is followed, be it over.
    pub(super) fn has(&self, id: &str) -> bool {
        self.followed.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: Arc<str>, attachment: Attachment) {
        // A client may open and close sessions for as long as it lives; each look costs what was added since the last one.
        if self.followed.len() >= self.many.max(FEW) {
            self.let_go_of_ended();
            self.many = 2 * self.followed.len();
        }
        self.followed.insert(id, attachment);
    }

    pub(super) fn get_mut(&mut self, session: &SessionSlot) -> Option<&mut Attachment> {
        self.followed.get_mut(&**session.id()).filter(|attachment| attachment.is_to(session))
    }

    /// Follows a session no longer; answers that are under way still come. False when it was not followed.
    pub(super) fn leave(&mut self, id: &str) -> bool {
        self.take(id).map(Attachment::leave).is_some()
    }

    /// Takes a session out, to be followed anew.
    pub(super) fn take(&mut self, id: &str) -> Option<Attachment> {
        self.followed.remove(id)
    }

    /// Those that are followed.
    pub(super) fn all(&self) -> Vec<Arc<SessionSlot>> {
        self.followed.values().map(|attachment| Arc::clone(&attachment.session)).collect()
    }

    /// From here on we answer so much of what they ask.
    pub(super) fn answer(&mut self, abilities: Option<UiAbilities>) {
        for attachment in self.followed.values_mut() {
            attachment.present =
                abilities.map(|abilities| attachment.session.session_clients().enter(abilities));
        }
    }

    /// Follows none but this one, if it is followed.
    pub(super) fn leave_others(&mut self, id: &str) {
        let stays = self.followed.remove_entry(id);
        self.leave_all();
        self.followed.extend(stays);
    }

    pub(super) fn leave_all(&mut self) {
        for (_, attachment) in self.followed.drain() {
            attachment.leave();
        }
    }

    /// Our places as one that provides tools: in that session, or in all.
    pub(super) fn seats<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = &'a ToolProvider> {
        let meant = self.followed.iter().filter(move |(session, _)| id.is_none_or(|id| ***session == *id));
        meant.filter_map(|(_, attachment)| attachment.tools.as_ref())
    }

    /// Provides no tools any more: the client cannot answer.
    pub(super) fn disconnect_tools(&mut self) {
        for attachment in self.followed.values_mut() {
            attachment.tools = None;
        }
    }
}
