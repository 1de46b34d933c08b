//! The position of one subscriber in the log, and the answers that wait for it.

use std::{collections::VecDeque, time::Instant};

use super::events::{Events, FeedItem};

/// The bytes that an item's line takes when it is written: with its LF.
fn weight(item: &FeedItem) -> u64 {
    item.line_len() as u64 + 1
}

/// Where a subscriber stands in the row of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Before the event of this number, which it takes next.
    Before(u64),
    /// Cut off before the event of this number, and still to be told.
    CutOff(u64),
    /// Nowhere: it takes no events.
    Aside,
}

#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) standing: Standing,
    /// Not waited for any more.
    pub(super) is_cut_off: bool,
    /// Never waited for, and no reason to cut off another: its client only reads.
    pub(super) is_onlooker: bool,
    /// Since when too much waits for it, as far as anyone has looked.
    pub(super) over_since: Option<Instant>,
    replies: VecDeque<Reply>,
    reply_bytes: u64,
}

#[derive(Debug)]
struct Reply {
    /// The number of the event that it stands before.
    before: u64,
    /// The answer, or another line for this subscriber alone.
    item: FeedItem,
}

impl Subscription {
    pub(super) fn new(next: u64) -> Self {
        let (standing, replies) = (Standing::Before(next), VecDeque::new());
        Self { standing, is_cut_off: false, is_onlooker: false, over_since: None, replies, reply_bytes: 0 }
    }

    /// One that takes answers alone.
    pub(super) fn aside(is_onlooker: bool) -> Self {
        Self { standing: Standing::Aside, is_onlooker, ..Self::new(0) }
    }

    /// Whether the session waits until it has taken enough.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.is_cut_off && !self.is_onlooker
    }

    pub(super) fn reply_bytes(&self) -> u64 {
        self.reply_bytes
    }

    /// The bytes that it has yet to take.
    pub(super) fn unread(&self, events: &Events) -> u64 {
        let of_events = match self.standing {
            Standing::Before(next) => events.bytes_from(next),
            Standing::CutOff(_) | Standing::Aside => 0,
        };
        of_events + self.reply_bytes
    }

    /// Adds an answer, or another line for this subscriber alone, that stands before the event `before`.
    pub(super) fn send(&mut self, before: u64, item: FeedItem) {
        self.reply_bytes += weight(&item);
        self.replies.push_back(Reply { before, item });
    }

    /// Takes items until there are no more or `max_bytes` are reached.
    pub(super) fn take(&mut self, events: &mut Events, max_bytes: usize, out: &mut Vec<FeedItem>) {
        let stood = self.standing;
        let mut bytes = 0;
        while let Some(item) = self.next(events) {
            bytes += item.line_len() + 1;
            out.push(item);
            if bytes >= max_bytes {
                break;
            }
        }
        if let (Standing::Before(from), Standing::Before(to)) = (stood, self.standing) {
            events.repark(from, to);
        }
        if self.replies.is_empty() {
            // A burst of answers keeps no memory.
            self.replies = VecDeque::new();
        }
    }

    /// The next item, taken but for its event's place in the row.
    fn next(&mut self, events: &Events) -> Option<FeedItem> {
        let here = match self.standing {
            Standing::Before(seq) | Standing::CutOff(seq) => seq,
            Standing::Aside => u64::MAX,
        };
        if self.replies.front().is_some_and(|reply| reply.before <= here)
            && let Some(Reply { item, .. }) = self.replies.pop_front()
        {
            self.reply_bytes -= weight(&item);
            return Some(item);
        }
        match self.standing {
            Standing::Before(seq) => {
                let item = events.get(seq)?;
                self.standing = Standing::Before(seq + 1);
                Some(item)
            }
            Standing::CutOff(from_seq) => {
                self.standing = Standing::Aside;
                Some(FeedItem::Lagged { from_seq })
            }
            Standing::Aside => None,
        }
    }

    /// Drops its events. Its answers stay.
    pub(super) fn cut_off(&mut self, events: &mut Events) {
        (self.is_cut_off, self.over_since) = (true, None);
        if let Standing::Before(next) = self.standing {
            events.unpark(next);
            self.standing = Standing::CutOff(next);
        }
    }

    /// Clears `over_since` when little enough waits again. True when it was set until now.
    pub(super) fn relieve(&mut self, events: &Events, capacity: u64) -> bool {
        self.over_since.is_some() && self.unread(events) < capacity && self.over_since.take().is_some()
    }
}
