//! The sessions that a connection follows.

use std::{collections::HashMap, sync::Arc};

use agentd_session::{MoverGuard, PresenceGuard, SubagentListener, SubscriberId, ToolProvider, UiAbilities};
use tokio_util::sync::CancellationToken;

use super::feeds::OwedReplies;
use crate::hub::{ClientCount, SessionSlot};

/// A session that the connection follows.
pub(super) struct Attachment {
    /// The connection's subscription to its feed.
    pub(super) subscriber: SubscriberId,
    pub(super) owed: OwedReplies,
    pub(super) leaving: CancellationToken,
    pub(super) session: Arc<SessionSlot>,
    /// Counts the connection among the session's clients until it leaves, which may be before its last answer.
    pub(super) _count: ClientCount,
    /// Lets extensions of the session lead the connection to another one.
    pub(super) _mover: MoverGuard,
    /// Set while the client answers the session's questions to the user.
    pub(super) present: Option<PresenceGuard>,
    /// Set while the client follows all events of the session's subagents.
    pub(super) subagent_events: Option<SubagentListener>,
    /// Set while the client provides tools for the session.
    pub(super) tools: Option<ToolProvider>,
}

impl Attachment {
    /// Whether this session is followed, and not an earlier one of the same id.
    pub(super) fn is_to(&self, session: &SessionSlot) -> bool {
        std::ptr::eq(&*self.session, session)
    }

    /// Stops following, and takes the client's tools back.
    pub(super) fn leave(self) {
        self.leaving.cancel();
        if let Some(tools) = self.tools {
            tools.leave();
        }
    }
}

/// The number of followed sessions from which those that have ended are looked for.
const MIN_BEFORE_SWEEP: usize = 16;

/// The sessions that a connection follows, and the current one.
#[derive(Default)]
pub(super) struct Attachments {
    followed: HashMap<Arc<str>, Attachment>,
    /// The number of followed sessions at which those that have ended are removed next.
    sweep_at: usize,
    /// The session for commands that name none. It need not be followed.
    pub(super) current: Option<Arc<SessionSlot>>,
}

impl Attachments {
    /// Whether `limit` sessions are followed, without those that have ended.
    pub(super) fn are_full(&mut self, limit: usize) -> bool {
        if self.followed.len() >= limit {
            self.remove_ended();
        }
        self.followed.len() >= limit
    }

    fn remove_ended(&mut self) {
        self.followed.retain(|_, attachment| !attachment.session.has_ended());
    }

    /// The attachment to a session; `None` also when an earlier session of the same id is followed.
    pub(super) fn get(&self, session: &SessionSlot) -> Option<&Attachment> {
        self.followed.get(&**session.id()).filter(|attachment| attachment.is_to(session))
    }

    /// Whether a session of that id is followed, ended or not.
    pub(super) fn has(&self, id: &str) -> bool {
        self.followed.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: Arc<str>, attachment: Attachment) {
        // A client may open and close sessions forever. Doubling the threshold keeps the cost of a sweep constant for each insertion.
        if self.followed.len() >= self.sweep_at.max(MIN_BEFORE_SWEEP) {
            self.remove_ended();
            self.sweep_at = 2 * self.followed.len();
        }
        self.followed.insert(id, attachment);
    }

    pub(super) fn get_mut(&mut self, session: &SessionSlot) -> Option<&mut Attachment> {
        self.followed.get_mut(&**session.id()).filter(|attachment| attachment.is_to(session))
    }

    /// Stops following a session; answers that are owed still come. False when it was not followed.
    pub(super) fn leave(&mut self, id: &str) -> bool {
        self.take(id).map(Attachment::leave).is_some()
    }

    /// Removes an attachment, to be replaced by another one.
    pub(super) fn take(&mut self, id: &str) -> Option<Attachment> {
        self.followed.remove(id)
    }

    /// The sessions that are followed.
    pub(super) fn all(&self) -> Vec<Arc<SessionSlot>> {
        self.followed.values().map(|attachment| Arc::clone(&attachment.session)).collect()
    }

    /// From here on the client answers the questions that `abilities` allow.
    pub(super) fn answer(&mut self, abilities: Option<UiAbilities>) {
        for attachment in self.followed.values_mut() {
            attachment.present =
                abilities.map(|abilities| attachment.session.session_clients().enter(abilities));
        }
    }

    /// From here on the client follows all events of the sessions' subagents, or does not.
    pub(super) fn follow_subagents(&mut self, follows: bool) {
        for attachment in self.followed.values_mut() {
            let clients = attachment.session.session_clients();
            attachment.subagent_events = follows.then(|| clients.follow_subagents(attachment.subscriber));
        }
    }

    /// Stops following all sessions but this one.
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

    /// The client as a provider of tools: for that session, or for all.
    pub(super) fn tool_providers<'a>(
        &'a self,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a ToolProvider> {
        let meant = self.followed.iter().filter(move |(session, _)| id.is_none_or(|id| ***session == *id));
        meant.filter_map(|(_, attachment)| attachment.tools.as_ref())
    }

    /// Ends the client's tools, whose calls it cannot answer any more.
    pub(super) fn disconnect_tools(&mut self) {
        for attachment in self.followed.values_mut() {
            attachment.tools = None;
        }
    }
}
