//! The session's queues, and the event that tells of their changes.

use std::collections::HashMap;

use agentd_agent::queue::{QueueKind, Queued, Queues, Ticket};
use agentd_protocol::{
    command::{ClearedQueue, Disposition, StreamingBehavior},
    event::{Event, QueueUpdate},
    message::ImageContent,
    session::QueueMode,
};
use agentd_store::ledger::QueuedRecord;

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

/// A message that was taken out, until its entry is stored.
pub(crate) struct Delivered {
    kind: QueueKind,
    queued: Queued,
    key: Option<RequestKey>,
}

impl Delivered {
    /// Its number in the ledger.
    pub(crate) fn number(&self) -> u64 {
        self.queued.ticket
    }

    /// What its entry is to say of the command that it came by, if anything.
    pub(crate) fn record(&self) -> Option<Record> {
        self.key.clone().map(|key| Record { key, disposition: Disposition::Queued })
    }
}

impl SessionQueues {
    pub(crate) fn new(steering_mode: QueueMode, follow_up_mode: QueueMode) -> Self {
        let mut queues = Queues::default();
        (queues.steering_mode, queues.follow_up_mode) = (steering_mode, follow_up_mode);
        Self { queues, keys: HashMap::new(), sizes: HashMap::new(), bytes: 0 }
    }

    /// What the ledger is to know of a message that is about to wait.
    pub(crate) fn about(
        &self,
        kind: QueueKind,
        text: &str,
        images: &[ImageContent],
        key: Option<&RequestKey>,
    ) -> QueuedRecord {
        QueuedRecord {
            number: self.queues.next_ticket(),
            to: to(kind),
            text: text.to_owned(),
            images: images.to_vec(),
            request_key: key.map(ToString::to_string),
        }
    }

    pub(crate) fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<ImageContent>,
        key: Option<RequestKey>,
        feed: &Feed,
    ) {
        self.add(kind, text, images, key);
        self.publish(feed);
    }

    fn add(&mut self, kind: QueueKind, text: String, images: Vec<ImageContent>, key: Option<RequestKey>) {
        let bytes = size(&text, &images);
        let ticket = self.queues.push(kind, text, images);
        self.sizes.insert(ticket, bytes);
        self.bytes += bytes;
        self.keys.extend(key.map(|key| (ticket, key)));
    }

    /// Messages wait again that did when the daemon was killed; their keys.
    pub(crate) fn restore(&mut self, waiting: Vec<QueuedRecord>) -> Vec<RequestKey> {
        let mut keys = Vec::new();
        for QueuedRecord { to, text, images, request_key, .. } in waiting {
            let key = request_key.map(RequestKey::from);
            keys.extend(key.clone());
            self.add(queue_of(to), text, images, key);
        }
        keys
    }

    /// Messages that do not wait yet, though the ledger has them: their numbers are taken.
    pub(crate) fn reserve(&mut self, held: &[QueuedRecord]) {
        held.iter().for_each(|message| self.queues.reserve(message.number));
    }

    /// Those wait from now on; their keys.
    pub(crate) fn release(&mut self, held: Vec<QueuedRecord>, feed: &Feed) -> Vec<RequestKey> {
        let mut keys = Vec::new();
        for QueuedRecord { number, to, text, images, request_key } in held {
            let bytes = size(&text, &images);
            self.queues.push_reserved(queue_of(to), Queued { ticket: number, text, images });
            self.sizes.insert(number, bytes);
            self.bytes += bytes;
            if let Some(key) = request_key.map(RequestKey::from) {
                self.keys.insert(number, key.clone());
                keys.push(key);
            }
        }
        self.publish(feed);
        keys
    }

    pub(crate) fn next(&self, kind: QueueKind) -> Vec<Queued> {
        self.queues.next(kind)
    }

    /// Takes a message out as it is delivered; `None` when it no longer waits.
    pub(crate) fn deliver(&mut self, ticket: Ticket, feed: &Feed) -> Option<Delivered> {
        let (kind, queued) = self.queues.deliver(ticket)?;
        self.bytes -= self.sizes.remove(&ticket).unwrap_or_default();
        self.publish(feed);
        Some(Delivered { kind, queued, key: self.keys.remove(&ticket) })
    }

    /// A message that was taken out is no entry: it waits again. What the ledger is to know of it.
    pub(crate) fn put_back(
        &mut self,
        Delivered { kind, queued, key }: Delivered,
        feed: &Feed,
    ) -> QueuedRecord {
        let number = queued.ticket;
        let record = QueuedRecord { number, ..self.about(kind, &queued.text, &queued.images, key.as_ref()) };
        let bytes = size(&queued.text, &queued.images);
        self.sizes.insert(number, bytes);
        self.bytes += bytes;
        self.keys.extend(key.map(|key| (number, key)));
        self.queues.put_back(kind, queued);
        self.publish(feed);
        record
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

    /// Says what waits.
    pub(crate) fn publish(&self, feed: &Feed) {
        let (steering, follow_up) = self.queues.texts();
        // Strings always serialise.
        if let Ok(line) = encode(&Event::from(QueueUpdate { steering, follow_up })) {
            feed.publish([line]);
        }
    }
}

/// What a message takes, in bytes.
fn size(text: &str, images: &[ImageContent]) -> u64 {
    (text.len() + images.iter().map(|image| image.data.len()).sum::<usize>()) as u64
}

/// The queue that a message goes to.
pub(crate) fn queue_of(to: StreamingBehavior) -> QueueKind {
    match to {
        StreamingBehavior::Steer => QueueKind::Steering,
        StreamingBehavior::FollowUp => QueueKind::FollowUp,
    }
}

fn to(kind: QueueKind) -> StreamingBehavior {
    match kind {
        QueueKind::Steering => StreamingBehavior::Steer,
        QueueKind::FollowUp => StreamingBehavior::FollowUp,
    }
}
