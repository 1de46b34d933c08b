//! The session's queues, and the event that tells of their changes.

use std::{collections::HashMap, future::pending, time::Duration};

use agentd_agent::queue::{QueueKind, QueuedMessage, Queues, Ticket};
use agentd_memory::MemoryReservation;
use agentd_protocol::{
    command::{ClearedQueue, Disposition, Image, StreamingBehavior},
    error::{ErrorCode, Failure},
    event::{Event, QueueUpdate},
    message::ImageContent,
    session::QueueMode,
};
use agentd_store::intent_log::QueuedRecord;
use tokio::time::{Instant, sleep_until};

use crate::{
    event_log::Feed,
    reply::encode,
    requests::{RequestKey, RequestRecord},
    services::IntakeLimits,
};

/// Changes of queues with at most this many bytes of text are published at once.
const SMALL_BYTES: u64 = 16 << 10;

/// Changes of larger queues are published together: when they amount to this part of the texts...
const TOLD_PART: u64 = 4;

/// ...or after this time.
const TOLD_LATE: Duration = Duration::from_millis(250);

/// Queues whose changes are published: each by itself while they are small. The event has all texts, so that many changes of large queues, each
/// told by itself, would be more than anybody can read.
pub(crate) struct SessionQueues {
    queues: Queues,
    /// The keys of waiting messages that have one.
    keys: HashMap<Ticket, RequestKey>,
    /// The bytes of each waiting message, and of all together.
    sizes: HashMap<Ticket, u64>,
    bytes: u64,
    /// The bytes of the texts alone.
    text_bytes: u64,
    /// The bytes of texts that came or went since the queues were told.
    untold: u64,
    /// When they are told at the latest, if anything is untold.
    due: Option<Instant>,
    /// Reserves the memory of the messages.
    memory: MemoryReservation,
}

/// A message that was taken out, until its entry is stored.
pub(crate) struct Delivered {
    kind: QueueKind,
    queued: QueuedMessage,
    key: Option<RequestKey>,
}

impl Delivered {
    /// Its number in the intent log.
    pub(crate) fn number(&self) -> u64 {
        self.queued.ticket
    }

    /// The request key and disposition for its entry, if its command had a key.
    pub(crate) fn record(&self) -> Option<RequestRecord> {
        self.key.clone().map(|key| RequestRecord { key, disposition: Disposition::Queued })
    }
}

impl SessionQueues {
    pub(crate) fn new(
        steering_mode: QueueMode,
        follow_up_mode: QueueMode,
        memory: MemoryReservation,
    ) -> Self {
        let mut queues = Queues::default();
        (queues.steering_mode, queues.follow_up_mode) = (steering_mode, follow_up_mode);
        let (keys, sizes) = (HashMap::new(), HashMap::new());
        Self { queues, keys, sizes, bytes: 0, text_bytes: 0, untold: 0, due: None, memory }
    }

    /// The record for the intent log of a message that is about to wait.
    pub(crate) fn about(
        &self,
        kind: QueueKind,
        text: &str,
        images: &[ImageContent],
        key: Option<&RequestKey>,
    ) -> QueuedRecord {
        QueuedRecord {
            number: self.queues.next_ticket(),
            to: behavior_of(kind),
            text: text.to_owned(),
            images: images.to_vec(),
            request_key: key.map(ToString::to_string),
        }
    }

    /// Lets a message wait; gives its place.
    pub(crate) fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<ImageContent>,
        key: Option<RequestKey>,
        feed: &Feed,
    ) -> Ticket {
        let length = text.len();
        let ticket = self.add(kind, text, images, key);
        self.changed(length, feed);
        ticket
    }

    fn add(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<ImageContent>,
        key: Option<RequestKey>,
    ) -> Ticket {
        let (bytes, length) = (size(&text, &images), text.len());
        let ticket = self.queues.push(kind, text, images);
        self.count(ticket, bytes, length);
        self.keys.extend(key.map(|key| (ticket, key)));
        ticket
    }

    /// Restores messages that waited when the daemon was killed; gives their keys.
    pub(crate) fn restore(&mut self, waiting: Vec<QueuedRecord>) -> Vec<RequestKey> {
        let mut keys = Vec::new();
        for QueuedRecord { to, text, images, request_key, .. } in waiting {
            let key = request_key.map(RequestKey::from);
            keys.extend(key.clone());
            self.add(queue_of(to), text, images, key);
        }
        keys
    }

    /// Messages that do not wait yet, though the intent log has them: their numbers are taken.
    pub(crate) fn reserve(&mut self, held: &[QueuedRecord]) {
        held.iter().for_each(|message| self.queues.reserve(message.number));
    }

    /// Lets held messages wait from now on; gives their keys.
    pub(crate) fn release(&mut self, held: Vec<QueuedRecord>, feed: &Feed) -> Vec<RequestKey> {
        let mut keys = Vec::new();
        for QueuedRecord { number, to, text, images, request_key } in held {
            let (bytes, length) = (size(&text, &images), text.len());
            self.queues
                .push_reserved(queue_of(to), QueuedMessage { ticket: number, text, images, custom: None });
            self.count(number, bytes, length);
            if let Some(key) = request_key.map(RequestKey::from) {
                self.keys.insert(number, key.clone());
                keys.push(key);
            }
        }
        self.publish(feed);
        keys
    }

    pub(crate) fn next(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        self.queues.next(kind)
    }

    /// Takes a message out as it is delivered; `None` when it no longer waits.
    pub(crate) fn deliver(&mut self, ticket: Ticket, feed: &Feed) -> Option<Delivered> {
        let (kind, queued) = self.queues.deliver(ticket)?;
        self.bytes -= self.sizes.remove(&ticket).unwrap_or_default();
        self.text_bytes = self.text_bytes.saturating_sub(queued.text.len() as u64);
        self.memory.set(self.bytes);
        self.changed(queued.text.len(), feed);
        Some(Delivered { kind, queued, key: self.keys.remove(&ticket) })
    }

    /// A message that was taken out is no entry: it waits again. What the intent log is to know of it.
    pub(crate) fn put_back(
        &mut self,
        Delivered { kind, queued, key }: Delivered,
        feed: &Feed,
    ) -> QueuedRecord {
        let number = queued.ticket;
        let record = QueuedRecord { number, ..self.about(kind, &queued.text, &queued.images, key.as_ref()) };
        let (bytes, length) = (size(&queued.text, &queued.images), queued.text.len());
        self.count(number, bytes, length);
        self.keys.extend(key.map(|key| (number, key)));
        self.queues.put_back(kind, queued);
        self.changed(length, feed);
        record
    }

    /// Empties the queues; what waited, and its keys.
    pub(crate) fn clear(&mut self, feed: &Feed) -> (ClearedQueue, Vec<RequestKey>) {
        let (steering, follow_up) = self.queues.clear();
        (self.sizes, self.bytes, self.text_bytes) = (HashMap::new(), 0, 0);
        self.memory.set(0);
        self.publish(feed);
        (ClearedQueue { steering, follow_up }, self.keys.drain().map(|(_, key)| key).collect())
    }

    /// All messages that wait: steering, then follow-ups.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.queues.messages()
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// The number and size of waiting messages.
    pub(crate) fn waiting(&self) -> WaitingSize {
        WaitingSize { messages: self.queues.len() as u64, bytes: self.bytes }
    }

    pub(crate) fn modes(&self) -> (QueueMode, QueueMode) {
        (self.queues.steering_mode, self.queues.follow_up_mode)
    }

    pub(crate) fn mode(&self, kind: QueueKind) -> QueueMode {
        match kind {
            QueueKind::Steering => self.queues.steering_mode,
            QueueKind::FollowUp => self.queues.follow_up_mode,
        }
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

    /// Whether messages may wait that take `bytes` of memory together, beside those of all other sessions.
    ///
    /// # Errors
    /// `limit_reached`, for the sender of the last message.
    pub(crate) fn room_for(&mut self, bytes: u64) -> Result<(), Failure> {
        self.memory.grow_to(bytes).map_err(|refused| {
            let text = format!("The message cannot wait: {refused}.");
            Failure::new(ErrorCode::LimitReached, text).hint(refused.hint())
        })
    }

    fn count(&mut self, ticket: Ticket, bytes: u64, length: usize) {
        self.sizes.insert(ticket, bytes);
        self.bytes += bytes;
        self.text_bytes += length as u64;
        self.memory.set(self.bytes);
    }

    /// Publishes a change, now or together with later ones: a text of that length came or went.
    fn changed(&mut self, length: usize, feed: &Feed) {
        self.untold += length as u64;
        if self.text_bytes <= SMALL_BYTES || self.untold >= self.text_bytes / TOLD_PART {
            self.publish(feed);
        } else if self.due.is_none() {
            self.due = Some(Instant::now() + TOLD_LATE);
        }
    }

    /// Waits until changes have to be told that were not told at once. Cancel safe.
    pub(crate) async fn due(&self) {
        match self.due {
            Some(due) => sleep_until(due).await,
            None => pending().await,
        }
    }

    /// Publishes changes that were not published at once.
    pub(crate) fn publish_untold(&mut self, feed: &Feed) {
        if self.due.is_some() {
            self.publish(feed);
        }
    }

    /// Publishes the queues.
    pub(crate) fn publish(&mut self, feed: &Feed) {
        (self.untold, self.due) = (0, None);
        let (steering, follow_up) = self.queues.texts();
        // Strings always serialise.
        if let Ok(line) = encode(&Event::from(QueueUpdate { steering, follow_up })) {
            feed.publish([line]);
        }
    }
}

/// The size of a message in bytes.
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

/// The behaviour of a message that goes to that queue.
pub(crate) fn behavior_of(kind: QueueKind) -> StreamingBehavior {
    match kind {
        QueueKind::Steering => StreamingBehavior::Steer,
        QueueKind::FollowUp => StreamingBehavior::FollowUp,
    }
}

/// The memory of a message in bytes: its text, and its images in base64.
pub(crate) fn message_bytes(text: &str, images: &[Image]) -> u64 {
    let images: usize = images.iter().map(|image| image.data.len()).sum();
    (text.len() + images) as u64
}

impl IntakeLimits {
    /// Whether a message is one that may come in, by its size.
    pub(crate) fn takes(&self, text: &str, images: &[Image]) -> bool {
        self.check_message(message_bytes(text, images)).is_ok()
    }

    /// Whether a message of so many bytes may come in.
    pub(crate) fn check_message(&self, bytes: u64) -> Result<(), Failure> {
        let limit = self.message_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let text = format!("The message has {bytes} bytes with its images; the limit is {limit}.");
        Err(Failure::limit(text, "limits.maxMessageBytes", "Put large content into files."))
    }

    /// Whether a message of so many bytes may wait beside others.
    pub(crate) fn check_queue(&self, bytes: u64, waiting: WaitingSize) -> Result<(), Failure> {
        let instead = "Wait until some are delivered, or take them back by clear_queue.";
        if waiting.messages >= self.queued_messages {
            let WaitingSize { messages, .. } = waiting;
            let text = format!("{messages} messages wait in this session already, as many as may.");
            return Err(Failure::limit(text, "limits.maxQueuedMessages", instead));
        }
        if waiting.bytes.saturating_add(bytes) > self.queued_bytes {
            let (there, limit) = (waiting.bytes, self.queued_bytes);
            let text =
                format!("{there} bytes of messages wait in this session; {bytes} more would pass {limit}.");
            return Err(Failure::limit(text, "limits.maxQueuedBytes", instead));
        }
        Ok(())
    }

    /// Whether a session of so many bytes takes more.
    pub(crate) fn check_session(&self, bytes: u64) -> Result<(), Failure> {
        let limit = self.session_bytes;
        if bytes < limit {
            return Ok(());
        }
        let text = format!("The session has {bytes} bytes of entries; from {limit} on it takes no message.");
        Err(Failure::limit(text, "limits.maxSessionBytes", "Go on in a new session, or in a fork of a part."))
    }
}

/// Messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WaitingSize {
    /// Their number.
    pub(crate) messages: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

#[cfg(test)]
mod tests {
    use agentd_protocol::error::ErrorCode;

    use super::*;

    const LIMITS: IntakeLimits =
        IntakeLimits { message_bytes: 10, queued_messages: 2, queued_bytes: 15, session_bytes: 100 };

    #[track_caller]
    fn refused(result: Result<(), Failure>, setting: &str) {
        let failure = result.expect_err("a refusal");
        assert_eq!(failure.code, ErrorCode::LimitReached);
        assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains(setting)), "{failure:?}");
    }

    #[test]
    fn what_fits_is_taken_and_what_is_over_names_its_setting() {
        assert_eq!(LIMITS.check_message(10), Ok(()));
        refused(LIMITS.check_message(11), "limits.maxMessageBytes");
        assert_eq!(LIMITS.check_queue(10, WaitingSize { messages: 1, bytes: 5 }), Ok(()));
        refused(LIMITS.check_queue(0, WaitingSize { messages: 2, bytes: 5 }), "limits.maxQueuedMessages");
        refused(LIMITS.check_queue(11, WaitingSize { messages: 1, bytes: 5 }), "limits.maxQueuedBytes");
        assert_eq!(LIMITS.check_session(99), Ok(()));
        refused(LIMITS.check_session(100), "limits.maxSessionBytes");
    }

    #[test]
    fn images_count_as_they_came() {
        let image = Image { kind: "image".into(), data: "abcd".into(), mime_type: "image/png".into() };
        assert_eq!(message_bytes("xyz", &[image.clone(), image]), 11);
    }
}
