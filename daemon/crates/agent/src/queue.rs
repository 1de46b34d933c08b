//! Messages that wait to be delivered: steering between turns, follow-ups when the run would end.

use std::collections::VecDeque;

use agentd_protocol::{
    message::{CustomMessage, ImageContent},
    session::QueueMode,
};

/// The id of a queued message.
pub type Ticket = u64;

/// When a queued message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// After the current turn.
    Steering,
    /// When the run would otherwise end.
    FollowUp,
}

/// A message in a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Its id.
    pub ticket: Ticket,
    /// The text.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<ImageContent>,
    /// The message of an extension, in the place of text and images.
    pub custom: Option<Box<CustomMessage>>,
}

/// Both queues of a session.
///
/// Reading the next messages does not remove them: a message leaves its queue only when it is delivered, so that nothing is lost or
/// delivered twice when a run ends early or a client takes its messages back.
#[derive(Debug, Default)]
pub struct Queues {
    steering: VecDeque<QueuedMessage>,
    follow_up: VecDeque<QueuedMessage>,
    /// The delivery of steering messages.
    pub steering_mode: QueueMode,
    /// The delivery of follow-ups.
    pub follow_up_mode: QueueMode,
    last_ticket: Ticket,
}

impl Queues {
    /// Appends a message and returns its id.
    pub fn push(&mut self, kind: QueueKind, text: String, images: Vec<ImageContent>) -> Ticket {
        self.last_ticket += 1;
        let queued = QueuedMessage { ticket: self.last_ticket, text, images, custom: None };
        self.queue_mut(kind).push_back(queued);
        self.last_ticket
    }

    /// Reserves the ids up to this one.
    pub fn reserve(&mut self, last: Ticket) {
        self.last_ticket = self.last_ticket.max(last);
    }

    /// Appends a message with a reserved id.
    pub fn push_reserved(&mut self, kind: QueueKind, queued: QueuedMessage) {
        self.queue_mut(kind).push_back(queued);
    }

    /// The messages of the next delivery from a queue: one or all, by its mode.
    #[must_use]
    pub fn next(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        let (queue, mode) = match kind {
            QueueKind::Steering => (&self.steering, self.steering_mode),
            QueueKind::FollowUp => (&self.follow_up, self.follow_up_mode),
        };
        let count = match mode {
            QueueMode::All => queue.len(),
            QueueMode::OneAtATime => 1,
        };
        queue.iter().take(count).cloned().collect()
    }

    /// The id of the next message.
    #[must_use]
    pub fn next_ticket(&self) -> Ticket {
        self.last_ticket + 1
    }

    /// Takes out a message for delivery, with its queue; `None` if it is no longer queued.
    pub fn deliver(&mut self, ticket: Ticket) -> Option<(QueueKind, QueuedMessage)> {
        for kind in [QueueKind::Steering, QueueKind::FollowUp] {
            let queue = self.queue_mut(kind);
            if let Some(at) = queue.iter().position(|queued| queued.ticket == ticket) {
                return queue.remove(at).map(|queued| (kind, queued));
            }
        }
        None
    }

    /// Puts a message back that was taken out, before all others.
    pub fn put_back(&mut self, kind: QueueKind, queued: QueuedMessage) {
        self.queue_mut(kind).push_front(queued);
    }

    /// Empties both queues and gives back the texts: steering, follow-ups.
    pub fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = |queue: &mut VecDeque<QueuedMessage>| queue.drain(..).map(|queued| queued.text).collect();
        (texts(&mut self.steering), texts(&mut self.follow_up))
    }

    /// The waiting texts: steering, follow-ups.
    #[must_use]
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts =
            |queue: &VecDeque<QueuedMessage>| queue.iter().map(|queued| queued.text.clone()).collect();
        (texts(&self.steering), texts(&self.follow_up))
    }

    /// All that wait: steering, then follow-ups.
    pub fn messages(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.steering.iter().chain(&self.follow_up)
    }

    /// The number of queued messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    /// Whether both queues are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn queue_mut(&mut self, kind: QueueKind) -> &mut VecDeque<QueuedMessage> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_given_to_nobody_else() {
        let mut queues = Queues::default();
        queues.reserve(2);
        queues.reserve(1);
        assert_eq!(queues.push(QueueKind::FollowUp, "c".into(), Vec::new()), 3);
        let reserved = QueuedMessage { ticket: 2, text: "b".into(), images: Vec::new(), custom: None };
        queues.push_reserved(QueueKind::FollowUp, reserved.clone());
        assert_eq!(queues.deliver(2), Some((QueueKind::FollowUp, reserved)));
        assert_eq!(queues.next_ticket(), 4);
    }

    #[test]
    fn modes_decide_how_many_are_next_and_looking_takes_nothing() {
        let mut queues = Queues::default();
        for text in ["a", "b"] {
            queues.push(QueueKind::Steering, text.into(), Vec::new());
        }
        queues.push(QueueKind::FollowUp, "c".into(), Vec::new());
        assert_eq!(queues.next(QueueKind::Steering).len(), 1);
        queues.steering_mode = QueueMode::All;
        let next = queues.next(QueueKind::Steering);
        assert_eq!(next.iter().map(|queued| queued.text.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(queues.len(), 3);
        let (kind, first) = queues.deliver(next[0].ticket).unwrap();
        assert_eq!((kind, &first), (QueueKind::Steering, &next[0]));
        assert_eq!(queues.deliver(next[0].ticket), None, "a message is delivered once");
        queues.put_back(kind, first);
        assert_eq!(queues.next(QueueKind::Steering), next, "what was not delivered comes first again");
        queues.deliver(next[0].ticket).unwrap();
        assert_eq!(queues.texts(), (vec!["b".to_owned()], vec!["c".to_owned()]));
        assert_eq!(queues.clear(), (vec!["b".to_owned()], vec!["c".to_owned()]));
        assert_eq!(queues.deliver(next[1].ticket), None, "a message taken back is not delivered");
        assert!(queues.is_empty());
    }
}
