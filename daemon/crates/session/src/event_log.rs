//! Numbers events, and keeps each finished line until everyone who listens has taken it.
//!
//! Pure bookkeeping: no clock, no tasks, no locks. [`crate::feed`] adds the waiting.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

/// Names a listener for as long as it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u64);

/// One line that waits to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// An event, for every listener.
    Event {
        /// Counts the session's events from 1.
        seq: u64,
        /// The finished line, without LF.
        line: Bytes,
    },
    /// The answer to a command, for the listener that sent it. It stands in the log so that events and answers keep
    /// their order.
    Reply {
        /// Who asked.
        reader: ReaderId,
        /// The finished line, without LF.
        line: Bytes,
    },
}

impl Item {
    fn line(&self) -> &Bytes {
        match self {
            Self::Event { line, .. } | Self::Reply { line, .. } => line,
        }
    }
}

/// The log: lines from the oldest that someone still has to take to the newest.
#[derive(Debug)]
pub(crate) struct EventLog {
    items: VecDeque<Item>,
    /// The position of `items[0]`, counting everything that ever was in the log.
    first: u64,
    last_seq: u64,
    bytes: usize,
    capacity: usize,
    /// The position that each listener takes next.
    readers: BTreeMap<ReaderId, u64>,
    last_reader: u64,
}

impl EventLog {
    /// An empty log that has room until `capacity` bytes wait in it.
    #[must_use]
    pub(crate) fn new(capacity: usize) -> Self {
        let (items, readers) = (VecDeque::new(), BTreeMap::new());
        Self { items, first: 0, last_seq: 0, bytes: 0, capacity, readers, last_reader: 0 }
    }

    /// Adds an event and gives it its number.
    pub(crate) fn publish(&mut self, line: Bytes) -> u64 {
        self.last_seq += 1;
        self.push(Item::Event { seq: self.last_seq, line });
        self.last_seq
    }

    /// Adds an answer. It is dropped when whoever asked no longer listens.
    pub(crate) fn reply(&mut self, reader: ReaderId, line: Bytes) {
        if self.readers.contains_key(&reader) {
            self.push(Item::Reply { reader, line });
        }
    }

    /// Adds a listener, who takes everything from here on.
    pub(crate) fn attach(&mut self) -> ReaderId {
        self.last_reader += 1;
        let reader = ReaderId(self.last_reader);
        self.readers.insert(reader, self.first + self.items.len() as u64);
        reader
    }

    /// Removes a listener, and with it what only it had yet to take.
    pub(crate) fn detach(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
        self.trim();
    }

    /// Hands the lines that a listener has yet to take to `take`, oldest first, until that says false or none is left.
    pub(crate) fn read(&mut self, reader: ReaderId, mut take: impl FnMut(&Item) -> bool) {
        let Some(&next) = self.readers.get(&reader) else { return };
        let mut next = next;
        // `next` is never below `first`: the log keeps what any listener has yet to take.
        let skip = usize::try_from(next - self.first).unwrap_or(usize::MAX);
        for item in self.items.iter().skip(skip) {
            next += 1;
            let mine = !matches!(item, Item::Reply { reader: of, .. } if *of != reader);
            if mine && !take(item) {
                break;
            }
        }
        self.readers.insert(reader, next);
        self.trim();
    }

    /// Whether more may be added. What is added all the same is kept.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < self.capacity
    }

    fn push(&mut self, item: Item) {
        if self.readers.is_empty() {
            self.first += 1;
            return;
        }
        self.bytes += item.line().len();
        self.items.push_back(item);
    }

    /// Drops what every listener has taken.
    fn trim(&mut self) {
        let end = self.first + self.items.len() as u64;
        let keep_from = self.readers.values().copied().min().unwrap_or(end);
        while self.first < keep_from {
            if let Some(item) = self.items.pop_front() {
                self.bytes -= item.line().len();
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn take_all(log: &mut EventLog, reader: ReaderId) -> Vec<String> {
        let mut taken = Vec::new();
        log.read(reader, |item| {
            taken.push(String::from_utf8_lossy(item.line()).into_owned());
            true
        });
        taken
    }

    #[test]
    fn everyone_takes_every_event_and_only_their_own_replies_in_order() {
        let mut log = EventLog::new(100);
        assert_eq!(log.publish(line("nobody listens")), 1);
        let (one, two) = (log.attach(), log.attach());
        log.publish(line("a"));
        log.reply(one, line("to one"));
        log.publish(line("b"));
        assert_eq!(take_all(&mut log, one), ["a", "to one", "b"]);
        assert!(take_all(&mut log, one).is_empty());
        assert_eq!(log.items.len(), 3, "kept for the other listener");
        assert_eq!(take_all(&mut log, two), ["a", "b"]);
        assert_eq!((log.items.len(), log.bytes), (0, 0));
        log.detach(one);
        log.reply(one, line("late"));
        assert!(log.items.is_empty(), "nobody waits for that reply any more");
    }

    #[test]
    fn numbers_have_no_holes() {
        let mut log = EventLog::new(100);
        let reader = log.attach();
        log.publish(line("a"));
        log.reply(reader, line("r"));
        log.publish(line("b"));
        let mut seqs = Vec::new();
        log.read(reader, |item| {
            if let Item::Event { seq, .. } = item {
                seqs.push(*seq);
            }
            true
        });
        assert_eq!(seqs, [1, 2]);
    }

    #[test]
    fn room_is_counted_in_bytes_and_comes_back_as_lines_are_taken() {
        let mut log = EventLog::new(4);
        let reader = log.attach();
        log.publish(line("123"));
        assert!(log.has_room());
        log.publish(line("4567"));
        assert!(!log.has_room());
        log.read(reader, |_| false);
        assert!(!log.has_room() || log.bytes == 4);
        take_all(&mut log, reader);
        assert!(log.has_room());
        log.publish(line("12345"));
        log.detach(reader);
        assert!(log.has_room(), "a listener that left holds nothing back");
    }
}
