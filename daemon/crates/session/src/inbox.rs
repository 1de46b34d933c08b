//! Messages that wait for the actor in the order of their arrival, and the read-only commands that it may take before
//! their turn.

use std::collections::VecDeque;

use agentd_protocol::command::SessionCommand;
use tokio::sync::mpsc;

use crate::{
    event_log::Feed,
    messages::{INBOX, InboxMessage, ToolsMessage},
    reply::Reply,
};

/// The receiving end of a session's inbox, and the messages that were received but not taken yet.
pub(crate) struct Inbox<'a> {
    receiver: &'a mut mpsc::Receiver<InboxMessage>,
    received: VecDeque<InboxMessage>,
    batch: Vec<InboxMessage>,
    /// Set when no handle of the session is left.
    is_closed: bool,
}

impl<'a> Inbox<'a> {
    pub(crate) fn new(receiver: &'a mut mpsc::Receiver<InboxMessage>) -> Self {
        Self { receiver, received: VecDeque::new(), batch: Vec::new(), is_closed: false }
    }

    /// Waits until there is a message to take; false when there will be none.
    ///
    /// Cancel safe: what was received stays.
    pub(crate) async fn ready(&mut self, most: usize) -> bool {
        if self.received.is_empty() {
            self.receive(most).await;
        }
        !self.received.is_empty()
    }

    /// Waits for more messages and queues them behind the earlier ones.
    ///
    /// Cancel safe: what was received stays.
    pub(crate) async fn receive(&mut self, most: usize) {
        self.is_closed = self.receiver.recv_many(&mut self.batch, most).await == 0;
        self.received.extend(self.batch.drain(..));
    }

    /// Whether more messages may be received: up to the capacity of the inbox.
    pub(crate) fn may_receive(&self) -> bool {
        !self.is_closed && self.received.len() < INBOX
    }

    /// The next message.
    pub(crate) fn take(&mut self) -> Option<InboxMessage> {
        let next = self.received.pop_front();
        if self.received.is_empty() {
            // A burst of commands keeps no memory.
            self.received = VecDeque::new();
        }
        next
    }

    /// The first read-only command that can be answered while the session waits for slow subscribers: its answer goes
    /// to a subscriber that is not slow.
    ///
    /// It overtakes commands of slow subscribers, which delay themselves, and of clients that have left. It overtakes
    /// no other command, since commands of one client are done in order.
    pub(crate) fn take_look(&mut self, feed: &Feed) -> Option<(SessionCommand, Reply)> {
        let mut found = None;
        for (index, message) in self.received.iter().enumerate() {
            let Some((looks, reply)) = asked(message) else { continue };
            let is_full = feed.is_full(reply.subscriber);
            if looks && !is_full {
                found = Some(index);
                break;
            }
            if !is_full && feed.has(reply.subscriber) {
                break;
            }
        }
        match self.received.remove(found?)? {
            InboxMessage::Command(asked) => Some(*asked),
            // Only commands are read-only.
            other => {
                self.received.push_front(other);
                None
            }
        }
    }

    /// Everything that was received and not taken, and the inbox itself.
    pub(crate) fn into_parts(
        self,
    ) -> (impl Iterator<Item = InboxMessage>, &'a mut mpsc::Receiver<InboxMessage>) {
        (self.received.into_iter(), self.receiver)
    }
}

/// Whether a command is read-only, and where its answer goes; `None` for other messages.
fn asked(message: &InboxMessage) -> Option<(bool, &Reply)> {
    match message {
        InboxMessage::Command(asked) => Some((asked.0.spec().is_read_only(), &asked.1)),
        InboxMessage::Tools(message) => match &**message {
            ToolsMessage::Register { reply, .. } | ToolsMessage::Left { reply, .. } => {
                reply.as_ref().map(|reply| (false, reply))
            }
        },
        // The sender of these waits for the answer before it sends a command, or they take effect later than any
        // command.
        InboxMessage::Attach { .. }
        | InboxMessage::UiResponse(_)
        | InboxMessage::AskTrust
        | InboxMessage::LogIn(_)
        | InboxMessage::Activity(_)
        | InboxMessage::WhenIdle(_)
        | InboxMessage::Header(_)
        | InboxMessage::Copy { .. }
        | InboxMessage::Reopen(..)
        | InboxMessage::Unload(_)
        | InboxMessage::AskLeaving(..)
        | InboxMessage::Begin(_)
        | InboxMessage::CarryOut(..)
        | InboxMessage::Stay(_)
        | InboxMessage::GiveHosts(_)
        | InboxMessage::Close(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::command::Command;
    use bytes::Bytes;

    use super::*;
    use crate::event_log::{FeedLimits, SubscriberId};

    fn command(name: &str, subscriber: SubscriberId) -> InboxMessage {
        let line = format!(r#"{{"type":"{name}","message":"m"}}"#);
        let Some(Ok(Command::Session(command))) = Command::parse(name, &line) else { panic!("{name}") };
        let reply = Reply {
            subscriber,
            id: None,
            command: command.name(),
            environment: None,
            is_of_user: true,
            hears_results: false,
            memory: None,
        };
        InboxMessage::Command(Box::new((command, reply)))
    }

    /// A feed with one subscriber that does not read, and takes no more.
    fn full() -> (Feed, crate::event_log::Subscriber) {
        let feed = Feed::new(FeedLimits { outbox_bytes: 4, ..FeedLimits::default() });
        let stuck = feed.attach();
        feed.publish([Bytes::from_static(b"event")]);
        assert!(!feed.has_room());
        (feed, stuck)
    }

    /// Gives the names of what can be looked at while there is no room, after these messages.
    fn looks(feed: &Feed, messages: impl IntoIterator<Item = InboxMessage>) -> Vec<&'static str> {
        let (_sender, mut receiver) = mpsc::channel(1);
        let mut inbox = Inbox::new(&mut receiver);
        inbox.received.extend(messages);
        let count = inbox.received.len();
        let found: Vec<_> = std::iter::from_fn(|| inbox.take_look(feed)).map(|(it, _)| it.name()).collect();
        assert_eq!(inbox.received.len() + found.len(), count, "nothing is lost");
        found
    }

    #[test]
    fn looks_of_others_overtake_those_who_are_waited_for() {
        let (feed, stuck) = full();
        let other = feed.attach_aside(true);
        let messages = [
            command("steer", stuck.id()),
            InboxMessage::AskTrust,
            command("get_state", stuck.id()),
            command("get_state", other.id()),
            command("get_messages", other.id()),
        ];
        assert_eq!(looks(&feed, messages), ["get_state", "get_messages"]);
        assert!(!feed.has_room(), "the one that is waited for is not cut off");
    }

    #[test]
    fn a_look_does_not_overtake_what_its_client_has_asked_before() {
        let (feed, _stuck) = full();
        let (steers, looker) = (feed.attach_aside(false), feed.attach_aside(true));
        let messages = || [command("steer", steers.id()), command("get_state", looker.id())];
        assert!(looks(&feed, messages()).is_empty());
        // One that has left asks nothing more.
        let messages = messages();
        drop(steers);
        assert_eq!(looks(&feed, messages), ["get_state"]);
    }

    #[tokio::test]
    async fn messages_keep_their_order() {
        let feed = Feed::new(FeedLimits::default());
        let subscriber = feed.attach();
        let (sender, mut receiver) = mpsc::channel(8);
        for name in ["steer", "get_state", "follow_up"] {
            sender.try_send(command(name, subscriber.id())).map_err(drop).unwrap();
        }
        drop(sender);
        let mut inbox = Inbox::new(&mut receiver);
        let mut names = Vec::new();
        while inbox.ready(2).await {
            names.extend(std::iter::from_fn(|| inbox.take()).map(|message| match message {
                InboxMessage::Command(asked) => asked.1.command,
                _ => "",
            }));
        }
        assert_eq!(names, ["steer", "get_state", "follow_up"]);
        assert!(!inbox.may_receive());
    }
}
