//! The row of events that all subscribers share, and what a subscriber takes out of the log.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{long_reply::LongReply, message_ids::MessageId};

/// Identifies a subscriber; unique in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub(crate) u64);

impl SubscriberId {
    /// Of no subscriber: what is sent there is dropped.
    pub(crate) const NOBODY: Self = Self(0);
}

/// Which clients an event is for. The log hands every event to every subscriber; the connection filters by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// All.
    #[default]
    Everyone,
    /// A question of the daemon: clients that answer such questions, and clients that count the events.
    Asked,
    /// A question about a call, in two forms: the first `split` bytes of the line are for clients that said `permissions`, the others
    /// for all others that are asked, and for clients that count the events.
    Permission {
        /// The length of the first form.
        split: u32,
    },
    /// The end of such a question: clients that said `permissions`, and clients that count the events.
    Permissions,
    /// Clients that said hello, and so know more than pi's clients; and clients that count the events.
    Introduced,
    /// Clients that asked for events about subagents, and clients that count the events.
    Subagents,
    /// Clients that count the events, and would miss a number.
    Counting,
    /// All, in one form; from `split` on, the line has what only clients that hear of the ends of prompts get behind it.
    Settled {
        /// The length of the form for all.
        split: u32,
    },
}

/// An item that a subscriber takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedItem {
    /// An event.
    Event {
        /// Counts the session's events from 1, without holes.
        seq: u64,
        /// Whom it is for.
        audience: Audience,
        /// The message that it is about, if it is about one.
        message: Option<MessageId>,
        /// The finished line, without LF.
        line: Bytes,
    },
    /// The answer to a command of this subscriber. It stands among the events where it was given.
    Reply {
        /// The finished line, without LF.
        line: Bytes,
    },
    /// An answer that stands there as well, and whose line is made when it is written.
    LongReply {
        /// The answer.
        reply: LongReply,
    },
    /// A line for this subscriber alone that is no answer. It stands among the events where it was sent.
    Addressed {
        /// The finished line, without LF.
        line: Bytes,
    },
    /// The subscriber was cut off, because it did not keep up while others waited. No event follows.
    Lagged {
        /// The first event that it did not get.
        from_seq: u64,
    },
}

impl FeedItem {
    /// The length of the line in bytes; 0 where there is none. Of a long answer, the bytes that it keeps.
    #[must_use]
    pub fn line_len(&self) -> usize {
        match self {
            Self::Event { line, .. } | Self::Reply { line } | Self::Addressed { line } => line.len(),
            Self::LongReply { reply } => reply.kept_bytes(),
            Self::Lagged { .. } => 0,
        }
    }
}

/// A row that was longer gives its memory back once it needs a quarter of it. Shorter ones are not worth the while.
const SMALL_ROW: usize = 64;

/// The bytes that a line takes when it is written: with its LF.
pub(super) fn weight(line: &Bytes) -> u64 {
    line.len() as u64 + 1
}

/// Events from the oldest that is kept to the newest, and how many subscribers stand before each.
#[derive(Debug)]
pub(super) struct Events {
    row: VecDeque<Event>,
    /// The number of `row[0]`; with nothing in the row, that of the next event.
    first_seq: u64,
    /// The bytes of all events that there ever were.
    total: u64,
    /// Subscribers that have taken all events.
    parked_at_end: u32,
    /// Bytes of the newest events that are kept for clients that come back.
    replay_bytes: u64,
    /// Whether a client has ever listened: nobody else can come back.
    may_be_replayed: bool,
}

#[derive(Debug)]
struct Event {
    line: Bytes,
    audience: Audience,
    message: Option<MessageId>,
    /// The bytes of all events before this one.
    start: u64,
    /// Subscribers that take this one next.
    parked: u32,
}

impl Events {
    pub(super) fn starting_after(last_seq: u64, replay_bytes: u64) -> Self {
        let row = VecDeque::new();
        Self {
            row,
            first_seq: last_seq + 1,
            total: 0,
            parked_at_end: 0,
            replay_bytes,
            may_be_replayed: false,
        }
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.first_seq + self.row.len() as u64 - 1
    }

    /// The bytes of all events that there ever were.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The bytes of the events from number `seq` on, which has to be in the row or the next.
    pub(super) fn bytes_from(&self, seq: u64) -> u64 {
        self.index(seq).and_then(|index| self.row.get(index)).map_or(0, |event| self.total - event.start)
    }

    /// The event of that number, if it is there.
    pub(super) fn get(&self, seq: u64) -> Option<FeedItem> {
        let event = self.index(seq).and_then(|index| self.row.get(index))?;
        let Event { line, audience, message, .. } = event;
        Some(FeedItem::Event { seq, audience: *audience, message: *message, line: line.clone() })
    }

    pub(super) fn push(&mut self, line: Bytes, audience: Audience, message: Option<MessageId>) {
        let start = self.total;
        self.total += weight(&line);
        let parked = std::mem::take(&mut self.parked_at_end);
        self.row.push_back(Event { line, audience, message, start, parked });
        self.trim();
    }

    /// Keeps what comes from here on for clients that come back.
    pub(super) fn keep_for_replay(&mut self) {
        self.may_be_replayed = true;
    }

    /// Lets a subscriber stand before the event `seq`, so that it and all later ones are kept; false when it is not there and
    /// not the next either.
    pub(super) fn park(&mut self, seq: u64) -> bool {
        self.parked(seq).map(|parked| *parked += 1).is_some()
    }

    /// Takes a subscriber away from before the event `seq`.
    pub(super) fn unpark(&mut self, seq: u64) {
        if let Some(parked) = self.parked(seq) {
            *parked -= 1;
            self.trim();
        }
    }

    /// Moves a subscriber on to stand before `to`.
    pub(super) fn repark(&mut self, from: u64, to: u64) {
        // In this order, so that nothing is dropped in between.
        if from != to && self.park(to) {
            self.unpark(from);
        }
    }

    /// Drops what is only kept for replay.
    pub(super) fn forget(&mut self) {
        while self.row.front().is_some_and(|event| event.parked == 0) {
            self.row.pop_front();
            self.first_seq += 1;
        }
        self.row.shrink_to_fit();
    }

    fn parked(&mut self, seq: u64) -> Option<&mut u32> {
        let index = self.index(seq)?;
        if index == self.row.len() {
            return Some(&mut self.parked_at_end);
        }
        self.row.get_mut(index).map(|event| &mut event.parked)
    }

    fn index(&self, seq: u64) -> Option<usize> {
        seq.checked_sub(self.first_seq).and_then(|index| usize::try_from(index).ok())
    }

    /// Drops what nobody stands before or behind and replay does not keep.
    fn trim(&mut self) {
        let replayed = if self.may_be_replayed { self.replay_bytes } else { 0 };
        let kept_from = self.total.saturating_sub(replayed);
        while self.row.front().is_some_and(|event| event.parked == 0 && event.start < kept_from) {
            self.row.pop_front();
            self.first_seq += 1;
        }
        if self.row.capacity() > SMALL_ROW && self.row.len() < self.row.capacity() / 4 {
            self.row.shrink_to(self.row.len() * 2);
        }
    }
}

#[cfg(test)]
impl Events {
    /// The numbers and bytes of what is kept.
    pub(super) fn kept(&self) -> (std::ops::Range<u64>, u64) {
        (self.first_seq..self.last_seq() + 1, self.bytes_from(self.first_seq))
    }

    /// How many events the memory of the row is for.
    pub(super) fn row_capacity(&self) -> usize {
        self.row.capacity()
    }
}
