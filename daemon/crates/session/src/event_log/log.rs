//! Numbers events, and keeps each finished line until every subscriber has taken it, and a while longer for those that come
//! back.
//!
//! Pure bookkeeping: no clock, no tasks, no locks. [`Feed`](super::Feed) adds the waiting.
//!
//! Events are kept once, in one row for all subscribers; of a subscriber the log knows only where in that row it stands.
//! Answers wait with the subscriber that they are for, each with its place in the row. Adding a line costs the same for any number
//! of subscribers, and so does taking one: only the search for room, once it runs short, looks at all of them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    events::{Audience, Events, FeedItem, SubscriberId},
    long_reply::LongReply,
    message_ids::{MessageId, OpenMessages},
    subscription::{Standing, Subscription},
};

/// How many times the limit may wait for a subscriber while work is being stopped.
const STOPPING: u64 = 8;

/// Whether more may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// It may; else subscribers have to take something first.
    pub(crate) is_there: bool,
    /// When the next of those is to be cut off; `None` while they are waited for.
    pub(crate) next_cut: Option<Instant>,
    /// Subscribers were cut off just now.
    pub(crate) has_cut: bool,
}

/// The result of taking items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Something was taken.
    pub(crate) any: bool,
    /// Tasks that wait for room should look again.
    pub(crate) relieves: bool,
}

/// The log of one session.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Events,
    open_messages: OpenMessages,
    /// A client that stopped before this event cannot continue from there, though later events may still be kept.
    continues_from: u64,
    subscriptions: BTreeMap<SubscriberId, Subscription>,
    /// Bytes that may wait for one subscriber.
    capacity: u64,
    /// While fewer bytes than this were published in all, no subscriber can have too many waiting.
    surely_room_below: u64,
    /// Announced clients that are no subscribers yet.
    announced: usize,
    closed: bool,
}

impl EventLog {
    /// An empty log that numbers its events from `last_seq` + 1, has room while fewer than `capacity` bytes wait for each
    /// subscriber, and keeps `replay_bytes` of events that everyone has taken, from the first client on that may come back. Bytes are
    /// counted with each line's LF.
    #[must_use]
    pub(crate) fn starting_after(last_seq: u64, capacity: usize, replay_bytes: usize) -> Self {
        Self {
            events: Events::starting_after(last_seq, replay_bytes as u64),
            open_messages: OpenMessages::default(),
            continues_from: last_seq,
            subscriptions: BTreeMap::new(),
            // None at all would leave no subscriber that is not full.
            capacity: capacity.max(1) as u64,
            surely_room_below: u64::MAX,
            announced: 0,
            closed: false,
        }
    }

    /// The number of the last event; 0 before the first.
    #[must_use]
    pub(crate) fn last_seq(&self) -> u64 {
        self.events.last_seq()
    }

    /// Adds an event for everyone and gives it its number.
    pub(crate) fn publish(&mut self, line: Bytes) -> u64 {
        self.publish_for(Audience::Everyone, line)
    }

    /// Adds an event and gives it its number.
    pub(crate) fn publish_for(&mut self, audience: Audience, line: Bytes) -> u64 {
        let message = self.open_messages.of(&line);
        self.events.push(line, audience, message);
        self.last_seq()
    }

    /// The message that streams, after all events so far.
    #[must_use]
    pub(crate) fn open_message(&self) -> Option<MessageId> {
        self.open_messages.last()
    }

    /// Adds an answer. It is dropped when the subscriber has detached.
    pub(crate) fn reply(&mut self, id: SubscriberId, line: Bytes) {
        self.send(id, FeedItem::Reply { line });
    }

    /// Adds a long answer, as [`Self::reply`].
    pub(crate) fn reply_long(&mut self, id: SubscriberId, reply: LongReply) {
        self.send(id, FeedItem::LongReply { reply });
    }

    /// Adds a line for one subscriber that is no answer. As an answer, it is dropped only when the subscriber no longer listens.
    pub(crate) fn address(&mut self, id: SubscriberId, line: Bytes) {
        self.send(id, FeedItem::Addressed { line });
    }

    fn send(&mut self, id: SubscriberId, item: FeedItem) {
        let before = self.events.last_seq() + 1;
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.send(before, item);
            self.note_slack(id);
        }
    }

    /// Adds a subscriber, who takes everything from here on.
    pub(crate) fn attach(&mut self, id: SubscriberId) {
        self.events.keep_for_replay();
        self.attach_for_now(id);
    }

    /// The same for one that will not come back to go on from an event: nothing is kept for it once it has left.
    pub(crate) fn attach_for_now(&mut self, id: SubscriberId) {
        self.insert(id, self.last_seq() + 1);
    }

    /// Adds a subscriber, who takes everything after the event `seq`; false when that is no longer there, or has never been, and
    /// when the session is another one since.
    pub(crate) fn attach_since(&mut self, id: SubscriberId, seq: u64) -> bool {
        let is_there = seq >= self.continues_from && self.insert(id, seq.saturating_add(1));
        if is_there {
            self.events.keep_for_replay();
        }
        is_there
    }

    fn insert(&mut self, id: SubscriberId, next: u64) -> bool {
        if !self.events.park(next) {
            return false;
        }
        self.subscriptions.insert(id, Subscription::new(next));
        self.note_slack(id);
        true
    }

    /// Adds a subscriber that takes answers alone. An onlooker wants nothing but to look: nobody waits for it, and nobody is cut
    /// off for it. Its answers wait as long as it is there.
    pub(crate) fn attach_aside(&mut self, id: SubscriberId, is_onlooker: bool) {
        self.subscriptions.insert(id, Subscription::aside(is_onlooker));
    }

    /// The session is not what its events told: nobody who has seen it up to here can go on from there by events. `line` is the
    /// event that says so to those who listen; it is for those who count events.
    pub(crate) fn start_over(&mut self, line: Bytes) {
        // A client that notes the number of that event has seen nothing of the session as it is now.
        self.continues_from = self.publish_for(Audience::Counting, line) + 1;
    }

    /// Removes a subscriber, and with it what only it had yet to take. True when that may make room.
    pub(crate) fn detach(&mut self, id: SubscriberId) -> bool {
        let Some(subscription) = self.subscriptions.remove(&id) else { return false };
        if let Standing::Before(next) = subscription.standing {
            self.events.unpark(next);
        }
        subscription.over_since.is_some() || subscription.reply_bytes() >= self.capacity
    }

    /// Lets all events pass by a subscriber from here on: it takes answers only. True when that may make room.
    pub(crate) fn mute(&mut self, id: SubscriberId) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return false };
        if let Standing::Before(next) = subscription.standing {
            self.events.unpark(next);
        }
        subscription.standing = Standing::Aside;
        subscription.relieve(&self.events, self.capacity)
    }

    /// Says that someone waits for the session who does not listen yet: subscribers that do not keep up are cut off rather
    /// than waited for, as beside another subscriber.
    pub(crate) fn announce(&mut self) {
        self.announced += 1;
    }

    /// Takes one [`Self::announce`] back.
    pub(crate) fn unannounce(&mut self) {
        self.announced -= 1;
    }

    /// Moves what a subscriber has yet to take to the end of `out`, oldest first, until that is all or `max_bytes` are
    /// reached. At least one item is taken if there is any.
    pub(crate) fn take(&mut self, id: SubscriberId, max_bytes: usize, out: &mut Vec<FeedItem>) -> Taken {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return Taken::default() };
        let had = out.len();
        let full_of_replies = subscription.reply_bytes() >= self.capacity;
        subscription.take(&mut self.events, max_bytes, out);
        let frees_replies = full_of_replies && subscription.reply_bytes() < self.capacity;
        let relieves = subscription.relieve(&self.events, self.capacity) || frees_replies;
        Taken { any: out.len() > had, relieves }
    }

    /// Whether more may be added. What is added all the same is kept.
    #[must_use]
    pub(crate) fn has_room(&mut self) -> bool {
        if self.events.total() < self.surely_room_below {
            return true;
        }
        let counted = self.subscriptions.values().filter(|subscription| subscription.is_waited_for());
        let most = counted.map(|subscription| subscription.unread(&self.events)).max();
        let slack = most.map(|most| self.capacity.saturating_sub(most));
        self.surely_room_below = slack.map_or(u64::MAX, |slack| self.events.total() + slack);
        slack != Some(0)
    }

    /// Whether no subscriber has yet to take many times what it may: how far the log goes beyond its limit for the end of work that
    /// is being stopped.
    #[must_use]
    pub(crate) fn has_room_to_stop(&self) -> bool {
        let limit = self.capacity.saturating_mul(STOPPING);
        let mut counted = self.subscriptions.values().filter(|subscription| !subscription.is_cut_off);
        counted.all(|subscription| subscription.unread(&self.events) < limit)
    }

    /// Looks for room at the time `now`. A subscriber for whom too much has waited longer than `grace` is cut off, unless
    /// it is alone: its events are dropped, [`FeedItem::Lagged`] takes their place, its answers stay, and nobody waits for it
    /// any more.
    pub(crate) fn make_room(&mut self, now: Instant, grace: Duration) -> Room {
        let mut room = Room { is_there: self.has_room(), next_cut: None, has_cut: false };
        if room.is_there {
            return room;
        }
        let counted = self.subscriptions.values().filter(|subscription| !subscription.is_onlooker).count();
        let is_shared = counted + self.announced > 1;
        for subscription in self.subscriptions.values_mut() {
            if !subscription.is_waited_for() || subscription.unread(&self.events) < self.capacity {
                continue;
            }
            let since = *subscription.over_since.get_or_insert(now);
            if !is_shared {
                continue;
            }
            let cut_at = since + grace;
            if now >= cut_at {
                subscription.cut_off(&mut self.events);
                room.has_cut = true;
            } else {
                room.next_cut = Some(room.next_cut.map_or(cut_at, |earliest| earliest.min(cut_at)));
            }
        }
        room.is_there = self.has_room();
        room
    }

    /// Whether a subscriber holds up what the session says: too much waits for it. False for one that is not there.
    #[must_use]
    pub(crate) fn is_full(&self, id: SubscriberId) -> bool {
        let is_full = |subscription: &Subscription| {
            subscription.is_waited_for() && subscription.unread(&self.events) >= self.capacity
        };
        self.subscriptions.get(&id).is_some_and(is_full)
    }

    /// Whether a subscriber is there.
    #[must_use]
    pub(crate) fn has(&self, id: SubscriberId) -> bool {
        self.subscriptions.contains_key(&id)
    }

    /// Whether a subscriber has taken enough of its answers that it may ask for more. In a closed log nobody waits for that.
    #[must_use]
    pub(crate) fn has_reply_room(&self, id: SubscriberId) -> bool {
        let is_full = |subscription: &Subscription| subscription.reply_bytes() >= self.capacity;
        self.closed || !self.subscriptions.get(&id).is_some_and(is_full)
    }

    /// Lets go of the events that every subscriber has taken.
    pub(crate) fn forget(&mut self) {
        self.events.forget();
        if self.subscriptions.is_empty() {
            // A map that was in use keeps a node for eleven.
            self.subscriptions = BTreeMap::new();
        }
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether nothing more will come.
    #[must_use]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a subscriber takes no events any more because it did not keep up.
    #[cfg(test)]
    pub(crate) fn is_cut_off(&self, id: SubscriberId) -> bool {
        self.subscriptions.get(&id).is_some_and(|subscription| subscription.is_cut_off)
    }

    /// Keeps [`Self::surely_room_below`] right for a subscriber that came or got an answer. Events need no such care: each
    /// makes the sum of what was published grow as much as what waits.
    fn note_slack(&mut self, id: SubscriberId) {
        if let Some(subscription) = self.subscriptions.get(&id)
            && subscription.is_waited_for()
        {
            let slack = self.capacity.saturating_sub(subscription.unread(&self.events));
            self.surely_room_below = self.surely_room_below.min(self.events.total() + slack);
        }
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests;
