//! The session's queues, and the event that tells of their changes.

use std::collections::HashMap;

use agentd_agent::queue::{QueueKind, Queued, Queues, Ticket};
use agentd_protocol::{
    command::{ClearedQueue, Disposition},
    event::{Event, QueueUpdate},
    message::ImageContent,
    session::QueueMode,
};

use crate::{
    feed::Feed,
    intake::Waiting,
    reply::encode,
    requests::{Record, RequestKey},
};

/// Queues whose every change is published.
pub(crate) struct SessionQueues {
    queues: Queues,
    /// The keys of waiting messages that have one.
    keys: HashMap<Ticket, RequestKey>,
    /// What each waiting message takes, in bytes, and all together.
    sizes: HashMap<Ticket, u64>,
    bytes: u64,
}

impl SessionQueues {
    pub(crate) fn new(steering_mode: QueueMode, follow_up_mode: QueueMode) -> Self {
        let mut queues = Queues::default();
        (queues.steering_mode, queues.follow_up_mode) = (steering_mode, follow_up_mode);
        Self { queues, keys: HashMap::new(), sizes: HashMap::new(), bytes: 0 }
    }

    pub(crate) fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<ImageContent>,
        key: Option<RequestKey>,
        feed: &Feed,
    ) {
        let bytes = (text.len() + images.iter().map(|image| image.data.len()).sum::<usize>()) as u64;
        let ticket = self.queues.push(kind, text, images);
        self.sizes.insert(ticket, bytes);
        self.bytes += bytes;
        self.keys.extend(key.map(|key| (ticket, key)));
        self.publish(feed);
    }

    pub(crate) fn next(&self, kind: QueueKind) -> Vec<Queued> {
        self.queues.next(kind)
    }

    /// Takes a message out as it is delivered; `None` when it no longer waits. Else what its entry is to say of the
    /// command that it came by, if anything.
    pub(crate) fn deliver(&mut self, ticket: Ticket, feed: &Feed) -> Option<Option<Record>> {
        if !self.queues.deliver(ticket) {
            return None;
        }
        self.bytes -= self.sizes.remove(&ticket).unwrap_or_default();
        self.publish(feed);
        Some(self.keys.remove(&ticket).map(|key| Record { key, disposition: Disposition::Queued }))
    }

    /// Empties the queues; what waited, and its keys.
    pub(crate) fn clear(&mut self, feed: &Feed) -> (ClearedQueue, Vec<RequestKey>) {
        let (steering, follow_up) = self.queues.clear();
        (self.sizes, self.bytes) = (HashMap::new(), 0);
        self.publish(feed);
        (ClearedQueue { steering, follow_up }, self.keys.drain().map(|(_, key)| key).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting { messages: self.queues.len() as u64, bytes: self.bytes }
    }

    pub(crate) fn modes(&self) -> (QueueMode, QueueMode) {
        (self.queues.steering_mode, self.queues.follow_up_mode)
    }

    pub(crate) fn set_modes(&mut self, (steering, follow_up): (QueueMode, QueueMode)) {
        (self.queues.steering_mode, self.queues.follow_up_mode) = (steering, follow_up);
    }

    pub(crate) fn set_mode(&mut self, kind: QueueKind, mode: QueueMode) {
        match kind {
            QueueKind::Steering => self.queues.steering_mode = mode,
            QueueKind::FollowUp => self.queues.follow_up_mode = mode,
        }
    }

    fn publish(&self, feed: &Feed) {
        let (steering, follow_up) = self.queues.texts();
        // Strings always serialise.
        if let Ok(line) = encode(&Event::from(QueueUpdate { steering, follow_up })) {
            feed.publish([line]);
        }
    }
}
