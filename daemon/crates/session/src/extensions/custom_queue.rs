//! Messages of extensions that wait for the run, beside the queues of the user: clients neither see nor clear them.

use std::collections::VecDeque;

use agentd_agent::queue::{QueueKind, QueuedMessage, Ticket};
use agentd_protocol::message::CustomMessage;

/// Marks tickets of these messages.
const MARK: Ticket = 1 << 63;

/// The most messages that wait.
const MAX_WAITING: usize = 1000;

/// When a message of an extension is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CustomDelivery {
    /// As a queued message, which the model answers.
    Queued(QueueKind),
    /// At the end of the current turn, without a further one.
    TurnEnd,
    /// With the prompt of the next run.
    NextRun,
}

/// Messages of extensions that wait.
#[derive(Default)]
pub(crate) struct CustomQueue {
    waiting: VecDeque<(Ticket, CustomDelivery, CustomMessage)>,
    last: Ticket,
}

impl CustomQueue {
    /// Lets a message wait; false where too many do.
    pub(crate) fn push(&mut self, delivery: CustomDelivery, message: CustomMessage) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.last += 1;
        self.waiting.push_back((MARK | self.last, delivery, message));
        true
    }

    /// The messages of the next delivery from a queue.
    pub(crate) fn next(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        let of_kind =
            self.waiting.iter().filter(|(_, delivery, _)| *delivery == CustomDelivery::Queued(kind));
        let queued = |(ticket, _, message): &(Ticket, CustomDelivery, CustomMessage)| QueuedMessage {
            ticket: *ticket,
            text: String::new(),
            images: Vec::new(),
            custom: Some(Box::new(message.clone())),
        };
        of_kind.map(queued).collect()
    }

    /// The messages that wait, whenever they are delivered.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &CustomMessage> {
        self.waiting.iter().map(|(.., message)| message)
    }

    /// Takes a message out that is being delivered; `None` for a ticket of other queues, and for one that waits no more.
    pub(crate) fn deliver(&mut self, ticket: Ticket) -> Option<bool> {
        if ticket & MARK == 0 {
            return None;
        }
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, ..)| *waiting != ticket);
        Some(self.waiting.len() < before)
    }

    /// Takes all out that are delivered so.
    pub(crate) fn take(&mut self, wanted: CustomDelivery) -> Vec<CustomMessage> {
        let mut taken = Vec::new();
        self.waiting.retain(|(_, delivery, message)| {
            let goes = *delivery == wanted;
            if goes {
                taken.push(message.clone());
            }
            !goes
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::MessageContent;

    use super::*;

    fn message(custom_type: &str) -> CustomMessage {
        CustomMessage {
            custom_type: custom_type.to_owned(),
            content: MessageContent::default(),
            display: true,
            details: None,
            timestamp: 0,
        }
    }

    #[test]
    fn each_is_delivered_once_in_its_time() {
        let mut queue = CustomQueue::default();
        let steering = CustomDelivery::Queued(QueueKind::Steering);
        for (delivery, name) in [(steering, "a"), (CustomDelivery::TurnEnd, "b"), (steering, "c")] {
            assert!(queue.push(delivery, message(name)));
        }
        let next = queue.next(QueueKind::Steering);
        assert_eq!(next.len(), 2);
        assert_eq!(queue.deliver(next[0].ticket), Some(true));
        assert_eq!(queue.deliver(next[0].ticket), Some(false));
        assert_eq!(queue.deliver(1), None, "a ticket of the user's queues");
        assert_eq!(queue.next(QueueKind::Steering).len(), 1);
        assert_eq!(queue.take(CustomDelivery::TurnEnd)[0].custom_type, "b");
        assert!(queue.next(QueueKind::FollowUp).is_empty());
    }

    #[test]
    fn a_flood_is_refused() {
        let mut queue = CustomQueue::default();
        assert!((0..MAX_WAITING).all(|_| queue.push(CustomDelivery::NextRun, message("x"))));
        assert!(!queue.push(CustomDelivery::NextRun, message("x")));
        assert_eq!(queue.take(CustomDelivery::NextRun).len(), MAX_WAITING);
    }
}
