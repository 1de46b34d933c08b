//! The session's queues, and the event that tells of their changes.

use agentd_agent::queue::{QueueKind, Queued, Queues, Ticket};
use agentd_protocol::{
    command::ClearedQueue,
    event::{Event, QueueUpdate},
    message::ImageContent,
    session::QueueMode,
};

use crate::{feed::Feed, reply::encode};

/// Queues whose every change is published.
pub(crate) struct SessionQueues(Queues);

impl SessionQueues {
    pub(crate) fn new(steering_mode: QueueMode, follow_up_mode: QueueMode) -> Self {
        let mut queues = Queues::default();
        (queues.steering_mode, queues.follow_up_mode) = (steering_mode, follow_up_mode);
        Self(queues)
    }

    pub(crate) fn push(&mut self, kind: QueueKind, text: String, images: Vec<ImageContent>, feed: &Feed) {
        self.0.push(kind, text, images);
        self.publish(feed);
    }

    pub(crate) fn next(&self, kind: QueueKind) -> Vec<Queued> {
        self.0.next(kind)
    }

    pub(crate) fn deliver(&mut self, ticket: Ticket, feed: &Feed) -> bool {
        let waited = self.0.deliver(ticket);
        if waited {
            self.publish(feed);
        }
        waited
    }

    pub(crate) fn clear(&mut self, feed: &Feed) -> ClearedQueue {
        let (steering, follow_up) = self.0.clear();
        self.publish(feed);
        ClearedQueue { steering, follow_up }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn modes(&self) -> (QueueMode, QueueMode) {
        (self.0.steering_mode, self.0.follow_up_mode)
    }

    pub(crate) fn set_mode(&mut self, kind: QueueKind, mode: QueueMode) {
        match kind {
            QueueKind::Steering => self.0.steering_mode = mode,
            QueueKind::FollowUp => self.0.follow_up_mode = mode,
        }
    }

    fn publish(&self, feed: &Feed) {
        let (steering, follow_up) = self.0.texts();
        // Strings always serialise.
        if let Ok(line) = encode(&Event::from(QueueUpdate { steering, follow_up })) {
            feed.publish([line]);
        }
    }
}
