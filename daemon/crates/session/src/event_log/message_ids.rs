//! Which message an event is about: an id that `message_start`, every `message_update` and `message_end` of a message share.
//!
//! The log finds it out by the beginning of a line, when it numbers it, so that all clients have the same ids, whenever they join. The
//! connection adds the id to the lines of clients that want it.

use std::{
    fmt,
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
};

/// The beginning of the lines that are about a message. Most lines are: this one test spares the others.
const ABOUT: &[u8] = b"{\"type\":\"message_";
const RUN_END: &[u8] = b"{\"type\":\"agent_end\"";

/// Names a message among those of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId(NonZeroU32);

impl MessageId {
    fn next() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        // After four thousand million messages the ids begin anew.
        Self(NonZeroU32::new(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)).unwrap_or(NonZeroU32::MAX))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "msg-{}", self.0)
    }
}

/// The messages of a session that have begun and not ended. Some come whole while an answer streams.
#[derive(Debug, Default)]
pub(super) struct OpenMessages(Vec<MessageId>);

impl OpenMessages {
    /// The message that the next event is about, if it is about one.
    pub(super) fn of(&mut self, line: &[u8]) -> Option<MessageId> {
        let Some(rest) = line.strip_prefix(ABOUT) else {
            if !self.0.is_empty() && line.starts_with(RUN_END) {
                // A run leaves no message open, however it ended.
                self.0 = Vec::new();
            }
            return None;
        };
        if rest.starts_with(b"update\"") {
            return self.0.last().copied();
        }
        if rest.starts_with(b"start\"") {
            let id = MessageId::next();
            self.0.push(id);
            return Some(id);
        }
        if rest.starts_with(b"end\"") {
            let ended = self.0.pop();
            if self.0.is_empty() {
                // A session that is idle keeps no memory for it.
                self.0 = Vec::new();
            }
            // A message that was recovered may have an end alone.
            return Some(ended.unwrap_or_else(MessageId::next));
        }
        None
    }

    /// The message that streams, or else the last that has begun.
    pub(super) fn last(&self) -> Option<MessageId> {
        self.0.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(kinds: &[&str]) -> Vec<Option<u32>> {
        let mut open = OpenMessages::default();
        let mut first = None;
        let ids = kinds.iter().map(|kind| {
            let id = open.of(format!("{{\"type\":\"{kind}\",\"x\":1}}").as_bytes())?.0.get();
            Some(id - *first.get_or_insert(id))
        });
        ids.collect()
    }

    #[test]
    fn the_events_of_a_message_share_its_id() {
        assert_eq!(
            ids(&[
                "agent_start",
                "message_start",
                "message_end",
                "message_start",
                "message_update",
                "message_update",
                "message_end",
                "turn_end",
            ]),
            [None, Some(0), Some(0), Some(1), Some(1), Some(1), Some(1), None]
        );
    }

    #[test]
    fn a_message_that_comes_while_another_streams_has_its_own() {
        assert_eq!(
            ids(&["message_start", "message_start", "message_end", "message_update", "message_end"]),
            [Some(0), Some(1), Some(1), Some(0), Some(0)]
        );
    }

    #[test]
    fn the_end_of_a_run_leaves_nothing_open() {
        assert_eq!(
            ids(&["message_start", "agent_end", "message_update", "message_end", "message_startled"]),
            [Some(0), None, None, Some(1), None]
        );
    }
}
