//! Numbers events, and keeps each finished line until everyone who listens has taken it, and a while longer for those who
//! come back.
//!
//! Pure bookkeeping: no clock, no tasks, no locks. [`crate::feed`] adds the waiting.
//!
//! Events are kept once, in one row for all listeners; of a listener the log knows only where in that row it stands.
//! Answers wait with the listener that they are for, each with its place in the row. Adding a line costs the same however
//! many listen, and so does taking one: nothing looks at all listeners but the search for room, once it runs short.

mod events;
mod listener;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;

use self::{
    events::Events,
    listener::{Listener, Standing},
};

/// How many times the limit may wait for a listener while work is being stopped.
const STOPPING: u64 = 8;

/// Names a listener for as long as it listens. No two of a process are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub(crate) u64);

/// Which listeners an event is for. The log hands every event to everyone; who passes it on to a client looks at this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// All.
    #[default]
    Everyone,
    /// A question of the daemon: those who said that they answer such, and those who count the events.
    Asked,
    /// Those who said hello, and so know more than the reference's clients; and those who count the events.
    Introduced,
    /// Those who count the events, and would miss a number.
    Counting,
}

/// What a listener takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event {
        /// Counts the session's events from 1, without holes.
        seq: u64,
        /// Whom it is for.
        audience: Audience,
        /// The finished line, without LF.
        line: Bytes,
    },
    /// The answer to a command of this listener. It stands among the events where it was given.
    Reply {
        /// The finished line, without LF.
        line: Bytes,
    },
    /// A line for this listener alone that is no answer. It stands among the events where it was sent.
    Addressed {
        /// The finished line, without LF.
        line: Bytes,
    },
    /// The listener was cut off: it did not keep up, and others listen too. No event follows.
    Lagged {
        /// The first event that it did not get.
        from_seq: u64,
    },
}

impl Item {
    /// The length of the line in bytes; 0 where there is none.
    #[must_use]
    pub fn line_len(&self) -> usize {
        match self {
            Self::Event { line, .. } | Self::Reply { line } | Self::Addressed { line } => line.len(),
            Self::Lagged { .. } => 0,
        }
    }
}

/// Whether more may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// It may; else listeners have to take something first.
    pub(crate) is_there: bool,
    /// When the next of those is to be cut off; `None` while they are waited for.
    pub(crate) next_cut: Option<Instant>,
    /// Listeners were cut off just now.
    pub(crate) has_cut: bool,
}

/// What taking came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Something was taken.
    pub(crate) any: bool,
    /// Whoever waits for room should look again.
    pub(crate) relieves: bool,
}

/// The log of one session.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Events,
    /// Nobody who stopped before this event can go on from there, though what followed may still be kept.
    continues_from: u64,
    listeners: BTreeMap<ReaderId, Listener>,
    /// How many bytes may wait for one listener.
    capacity: u64,
    /// As long as fewer bytes than this were ever published, no listener can have too many waiting.
    surely_room_below: u64,
    /// Those who wait for the session beside the listeners.
    announced: usize,
    closed: bool,
}

impl EventLog {
    /// An empty log that numbers its events from `last_seq` + 1, has room while fewer than `capacity` bytes wait for each
    /// listener, and keeps `replay_bytes` of events that everyone has taken. Bytes are counted with each line's LF.
    #[must_use]
    pub(crate) fn starting_after(last_seq: u64, capacity: usize, replay_bytes: usize) -> Self {
        Self {
            events: Events::starting_after(last_seq, replay_bytes as u64),
            continues_from: last_seq,
            listeners: BTreeMap::new(),
            // None at all would leave no listener that is not full.
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
        self.events.push(line, audience);
        self.last_seq()
    }

    /// Adds an answer. It is dropped when whoever asked no longer listens.
    pub(crate) fn reply(&mut self, reader: ReaderId, line: Bytes) {
        self.send(reader, Item::Reply { line });
    }

    /// Adds a line for one listener that is no answer. As an answer, it is dropped only when the listener no longer listens.
    pub(crate) fn address(&mut self, reader: ReaderId, line: Bytes) {
        self.send(reader, Item::Addressed { line });
    }

    fn send(&mut self, reader: ReaderId, item: Item) {
        let before = self.events.last_seq() + 1;
        if let Some(listener) = self.listeners.get_mut(&reader) {
            listener.send(before, item);
            self.note_slack(reader);
        }
    }

    /// Adds a listener, who takes everything from here on.
    pub(crate) fn attach(&mut self, reader: ReaderId) {
        self.insert(reader, self.last_seq() + 1);
    }

    /// Adds a listener, who takes everything after the event `seq`; false when that is no longer there, or has never been, and
    /// when the session is another one since.
    pub(crate) fn attach_since(&mut self, reader: ReaderId, seq: u64) -> bool {
        seq >= self.continues_from && self.insert(reader, seq.saturating_add(1))
    }

    fn insert(&mut self, reader: ReaderId, next: u64) -> bool {
        if !self.events.park(next) {
            return false;
        }
        self.listeners.insert(reader, Listener::new(next));
        self.note_slack(reader);
        true
    }

    /// Adds a listener that takes answers alone. An onlooker wants nothing but to look: nobody waits for it, and nobody is cut
    /// off for it. Its answers wait as long as it is there.
    pub(crate) fn attach_aside(&mut self, reader: ReaderId, is_onlooker: bool) {
        self.listeners.insert(reader, Listener::aside(is_onlooker));
    }

    /// The session is not what its events told: nobody who has seen it up to here can go on from there by events. `line` is the
    /// event that says so to those who listen; it is for those who count events.
    pub(crate) fn start_over(&mut self, line: Bytes) {
        // Whoever notes the number of that event has seen nothing of the session as it is now.
        self.continues_from = self.publish_for(Audience::Counting, line) + 1;
    }

    /// Removes a listener, and with it what only it had yet to take. True when that may make room.
    pub(crate) fn detach(&mut self, reader: ReaderId) -> bool {
        let Some(listener) = self.listeners.remove(&reader) else { return false };
        if let Standing::Before(next) = listener.standing {
            self.events.unpark(next);
        }
        listener.over_since.is_some() || listener.reply_bytes() >= self.capacity
    }

    /// Lets all events pass by a listener from here on: it takes answers only. True when that may make room.
    pub(crate) fn mute(&mut self, reader: ReaderId) -> bool {
        let Some(listener) = self.listeners.get_mut(&reader) else { return false };
        if let Standing::Before(next) = listener.standing {
            self.events.unpark(next);
        }
        listener.standing = Standing::Aside;
        listener.relieve(&self.events, self.capacity)
    }

    /// Says that someone waits for the session who does not listen yet: listeners that do not keep up are cut off rather
    /// than waited for, as beside another listener.
    pub(crate) fn announce(&mut self) {
        self.announced += 1;
    }

    /// Takes one [`Self::announce`] back.
    pub(crate) fn unannounce(&mut self) {
        self.announced -= 1;
    }

    /// Moves what a listener has yet to take to the end of `out`, oldest first, until that is all or `max_bytes` are
    /// reached. At least one item is taken if there is any.
    pub(crate) fn take(&mut self, reader: ReaderId, max_bytes: usize, out: &mut Vec<Item>) -> Taken {
        let Some(listener) = self.listeners.get_mut(&reader) else { return Taken::default() };
        let had = out.len();
        let full_of_replies = listener.reply_bytes() >= self.capacity;
        listener.take(&mut self.events, max_bytes, out);
        let frees_replies = full_of_replies && listener.reply_bytes() < self.capacity;
        let relieves = listener.relieve(&self.events, self.capacity) || frees_replies;
        Taken { any: out.len() > had, relieves }
    }

    /// Whether more may be added. What is added all the same is kept.
    #[must_use]
    pub(crate) fn has_room(&mut self) -> bool {
        if self.events.total() < self.surely_room_below {
            return true;
        }
        let counted = self.listeners.values().filter(|listener| listener.is_waited_for());
        let most = counted.map(|listener| listener.unread(&self.events)).max();
        let slack = most.map(|most| self.capacity.saturating_sub(most));
        self.surely_room_below = slack.map_or(u64::MAX, |slack| self.events.total() + slack);
        slack != Some(0)
    }

    /// Whether no listener has yet to take many times what it may: how far the log goes beyond its limit for the end of work that
    /// is being stopped.
    #[must_use]
    pub(crate) fn has_room_to_stop(&self) -> bool {
        let limit = self.capacity.saturating_mul(STOPPING);
        let mut counted = self.listeners.values().filter(|listener| !listener.is_cut_off);
        counted.all(|listener| listener.unread(&self.events) < limit)
    }

    /// Looks for room at the time `now`. A listener for whom too much has waited longer than `grace` is cut off, unless
    /// it is alone: its events are dropped, [`Item::Lagged`] takes their place, its answers stay, and nobody waits for it
    /// any more.
    pub(crate) fn make_room(&mut self, now: Instant, grace: Duration) -> Room {
        let mut room = Room { is_there: self.has_room(), next_cut: None, has_cut: false };
        if room.is_there {
            return room;
        }
        let counted = self.listeners.values().filter(|listener| !listener.is_onlooker).count();
        let is_shared = counted + self.announced > 1;
        for listener in self.listeners.values_mut() {
            if !listener.is_waited_for() || listener.unread(&self.events) < self.capacity {
                continue;
            }
            let since = *listener.over_since.get_or_insert(now);
            if !is_shared {
                continue;
            }
            let cut_at = since + grace;
            if now >= cut_at {
                listener.cut_off(&mut self.events);
                room.has_cut = true;
            } else {
                room.next_cut = Some(room.next_cut.map_or(cut_at, |earliest| earliest.min(cut_at)));
            }
        }
        room.is_there = self.has_room();
        room
    }

    /// Whether a listener holds up what the session says: too much waits for it. False for one that is not there.
    #[must_use]
    pub(crate) fn is_full(&self, reader: ReaderId) -> bool {
        let is_full =
            |listener: &Listener| listener.is_waited_for() && listener.unread(&self.events) >= self.capacity;
        self.listeners.get(&reader).is_some_and(is_full)
    }

    /// Whether a listener is there.
    #[must_use]
    pub(crate) fn has(&self, reader: ReaderId) -> bool {
        self.listeners.contains_key(&reader)
    }

    /// Whether a listener has taken enough of its answers that it may ask for more. In a closed log nobody waits for that.
    #[must_use]
    pub(crate) fn has_reply_room(&self, reader: ReaderId) -> bool {
        let is_full = |listener: &Listener| listener.reply_bytes() >= self.capacity;
        self.closed || !self.listeners.get(&reader).is_some_and(is_full)
    }

    /// Lets go of the events that every listener has taken.
    pub(crate) fn forget(&mut self) {
        self.events.forget();
        if self.listeners.is_empty() {
            // A map that was in use keeps a node for eleven.
            self.listeners = BTreeMap::new();
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

    /// Whether a listener takes no events any more because it did not keep up.
    #[cfg(test)]
    pub(crate) fn is_cut_off(&self, reader: ReaderId) -> bool {
        self.listeners.get(&reader).is_some_and(|listener| listener.is_cut_off)
    }

    /// Keeps [`Self::surely_room_below`] right for a listener that came or got an answer. Events need no such care: each
    /// makes the sum of what was published grow as much as what waits.
    fn note_slack(&mut self, reader: ReaderId) {
        if let Some(listener) = self.listeners.get(&reader)
            && listener.is_waited_for()
        {
            let slack = self.capacity.saturating_sub(listener.unread(&self.events));
            self.surely_room_below = self.surely_room_below.min(self.events.total() + slack);
        }
    }
}
