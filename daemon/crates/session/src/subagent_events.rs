//! Events of subagents for connections that follow the session that they work for.
//!
//! A connection asks for them by `set_subagent_subscription`. While one does, each subagent at work has one subscriber more; what it takes
//! is put into one line, whatever the number of connections, and addressed to each. A connection that does not keep up misses events, and
//! is told so: a subagent never waits for it.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use tokio::sync::{Notify, futures::Notified};

use crate::event_log::{Audience, Feed, FeedItem, Subscriber, SubscriberId};

/// The connections that follow all events of a session's subagents. It outlives the session's stay in memory. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SubagentListeners(Arc<Listeners>);

#[derive(Default)]
struct Listeners {
    all: Mutex<Vec<SubscriberId>>,
    changed: Notify,
}

impl SubagentListeners {
    /// Adds a connection, until the guard is dropped.
    pub(crate) fn add(&self, subscriber: SubscriberId) -> SubagentListener {
        self.change(|all| all.push(subscriber));
        SubagentListener { all: self.clone(), subscriber }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<SubscriberId>)) {
        // Changed by single calls.
        change(&mut self.0.all.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_waiters();
    }

    fn now(&self) -> Vec<SubscriberId> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fires with the next change. Made before a look, it misses none.
    fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }
}

/// A connection follows the events of a session's subagents until it is dropped.
pub struct SubagentListener {
    all: SubagentListeners,
    subscriber: SubscriberId,
}

impl Drop for SubagentListener {
    fn drop(&mut self) {
        self.all.change(|all| all.retain(|other| *other != self.subscriber));
    }
}

/// Takes events of subagents to those who listen in the session that they work for.
pub(crate) struct SubagentRelay {
    session_id: String,
    feed: Feed,
    listeners: SubagentListeners,
}

impl SubagentRelay {
    pub(crate) fn new(session_id: &str, feed: Feed, listeners: SubagentListeners) -> Self {
        Self { session_id: session_id.to_owned(), feed, listeners }
    }

    /// Takes the events of the subagent `id` to those who listen, until `work` is done. `attach` begins to take its events.
    pub(crate) async fn during<T>(
        &self,
        id: &str,
        attach: impl Fn() -> Option<Subscriber>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        let mut lines = Lines { relay: self, id, missed: HashMap::new() };
        let mut items = Vec::new();
        loop {
            let changed = self.listeners.changed();
            if self.listeners.now().is_empty() {
                tokio::select! {
                    done = &mut work => return done,
                    () = changed => continue,
                }
            }
            let Some(subscriber) = attach() else { return work.await };
            loop {
                let changed = self.listeners.changed();
                let listeners = self.listeners.now();
                if listeners.is_empty() {
                    break;
                }
                tokio::select! {
                    is_open = subscriber.next_items(&mut items) => {
                        let is_cut = lines.send(&listeners, &mut items);
                        if !is_open {
                            return work.await;
                        }
                        if is_cut {
                            break;
                        }
                    }
                    done = &mut work => {
                        while subscriber.ready_items(&mut items) {
                            lines.send(&listeners, &mut items);
                        }
                        return done;
                    }
                    () = changed => {}
                }
            }
        }
    }
}

/// The lines about one subagent.
struct Lines<'a> {
    relay: &'a SubagentRelay,
    id: &'a str,
    /// The first event that a connection missed, since it did not keep up.
    missed: HashMap<SubscriberId, u64>,
}

impl Lines<'_> {
    /// Sends events on. Whether the subscriber was cut off.
    fn send(&mut self, listeners: &[SubscriberId], items: &mut Vec<FeedItem>) -> bool {
        let mut is_cut = false;
        for item in items.drain(..) {
            match item {
                FeedItem::Event { seq, audience: Audience::Everyone, line, .. } => {
                    self.event(listeners, seq, &line);
                }
                FeedItem::Event { seq, audience: Audience::Settled { split }, line, .. } => {
                    let end = line.len().min(usize::try_from(split).unwrap_or(usize::MAX));
                    self.event(listeners, seq, &line[..end]);
                }
                FeedItem::Lagged { from_seq } => {
                    is_cut = true;
                    listeners.iter().for_each(|listener| {
                        self.missed.entry(*listener).or_insert(from_seq);
                    });
                }
                FeedItem::Event { .. }
                | FeedItem::Reply { .. }
                | FeedItem::LongReply { .. }
                | FeedItem::Addressed { .. } => {}
            }
        }
        is_cut
    }

    fn event(&mut self, listeners: &[SubscriberId], seq: u64, event: &[u8]) {
        let feed = &self.relay.feed;
        let mut line = None;
        for listener in listeners {
            if !feed.has_reply_room(*listener) {
                self.missed.entry(*listener).or_insert(seq);
                continue;
            }
            if let Some(from) = self.missed.remove(listener) {
                let lagged = format!(r#"{{"type":"lagged","fromSeq":{from}}}"#);
                feed.address(*listener, self.line(lagged.as_bytes()));
            }
            let line = line.get_or_insert_with(|| self.line(event));
            feed.address(*listener, line.clone());
        }
    }

    /// The line of an event that is a line itself.
    fn line(&self, event: &[u8]) -> Bytes {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let before = format!(r#"{{"type":"subagent_event","payload":{{"id":{},"event":"#, quoted(self.id));
        let after = format!(r#"}},"sessionId":{}}}"#, quoted(&self.relay.session_id));
        [before.as_bytes(), event, after.as_bytes()].concat().into()
    }
}

/// The relay of a session, once there is one. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct SubagentRelayLink(Arc<OnceLock<SubagentRelay>>);

impl SubagentRelayLink {
    /// Only the first counts: a session in memory has one.
    pub(crate) fn set(&self, relay: SubagentRelay) {
        let _ = self.0.set(relay);
    }

    pub(crate) fn get(&self) -> Option<&SubagentRelay> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::event_log::FeedLimits;

    fn lines(items: Vec<FeedItem>) -> Vec<String> {
        let line = |item| match item {
            FeedItem::Addressed { line } => String::from_utf8(line.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        items.into_iter().map(line).collect()
    }

    /// A relay of small room, with one that listens and has taken nothing.
    fn relay(room: usize) -> (Feed, SubagentRelay, Subscriber, SubagentListener) {
        let feed = Feed::new(FeedLimits { outbox_bytes: room, ..FeedLimits::default() });
        let listeners = SubagentListeners::default();
        let client = feed.attach();
        let guard = listeners.add(client.id());
        (feed.clone(), SubagentRelay::new("p", feed, listeners), client, guard)
    }

    #[tokio::test]
    async fn events_are_put_into_lines_until_the_work_is_done() {
        let child = Feed::new(FeedLimits::default());
        let (_, relay, client, guard) = relay(1 << 20);
        let (done, work) = oneshot::channel::<()>();
        let relaying = relay.during("a\"b", || Some(child.attach()), work);
        let publishing = async {
            tokio::task::yield_now().await;
            child.publish([Bytes::from(r#"{"type":"x"}"#)]);
            child.publish_for(Audience::Counting, Bytes::from(r#"{"type":"hidden"}"#));
            child.publish_for(Audience::Settled { split: 12 }, Bytes::from(r#"{"type":"s"}{"type":"t"}"#));
            done.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(relaying, publishing);
        ended.unwrap();
        let mut items = Vec::new();
        assert!(client.ready_items(&mut items));
        let line = |event: &str| {
            format!(
                r#"{{"type":"subagent_event","payload":{{"id":"a\"b","event":{event}}},"sessionId":"p"}}"#
            )
        };
        assert_eq!(lines(items), [line(r#"{"type":"x"}"#), line(r#"{"type":"s"}"#)]);
        drop(guard);
        assert!(relay.listeners.now().is_empty());
    }

    #[test]
    fn one_that_does_not_keep_up_misses_events_and_is_told() {
        let (feed, relay, client, _guard) = relay(100);
        let mut sent = Lines { relay: &relay, id: "a", missed: HashMap::new() };
        for seq in 1..=5 {
            sent.event(&[client.id()], seq, br#"{"type":"x"}"#);
        }
        let mut items = Vec::new();
        assert!(client.ready_items(&mut items));
        assert_eq!(items.len(), 2, "as many as fit: {items:?}");
        assert!(feed.has_reply_room(client.id()));
        sent.event(&[client.id()], 6, br#"{"type":"y"}"#);
        items.clear();
        assert!(client.ready_items(&mut items));
        let told = lines(items);
        assert!(told[0].contains(r#""event":{"type":"lagged","fromSeq":3}"#), "{told:?}");
        assert!(told[1].contains(r#"{"type":"y"}"#), "{told:?}");
    }
}
