//! An answer whose line is made while it is written, since all of it at once would fill memory.

use std::{fmt, sync::Arc};

use agentd_protocol::{Json, message::Message};
use bytes::Bytes;

/// An answer with many messages. Cheap to clone.
///
/// Its messages are those of the moment when it was given, and are read from the session's file, as far as they are there, when their turn
/// comes.
#[derive(Clone)]
pub struct LongReply(Arc<Parts>);

struct Parts {
    before: Bytes,
    messages: Vec<Json<Message>>,
    after: Bytes,
}

/// How far a [`LongReply`] was written: the number of its messages, once it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyPlace(Option<usize>);

impl LongReply {
    /// The line `before`, the messages with commas between them, and `after`.
    pub(crate) fn new(before: Bytes, messages: Vec<Json<Message>>, after: Bytes) -> Self {
        Self(Arc::new(Parts { before, messages, after }))
    }

    /// Appends messages from `place` on until `out` has at least `enough` bytes, or the line is complete; without LF. Returns whether it is
    /// complete, after which there is no more to be written. Blocks as a read of a file does.
    pub fn write_piece(&self, place: &mut ReplyPlace, enough: usize, out: &mut Vec<u8>) -> bool {
        let Parts { before, messages, after } = &*self.0;
        let begun = match place.0 {
            Some(written) => written,
            None => {
                out.extend_from_slice(before);
                0
            }
        };
        for (at, message) in messages.iter().enumerate().skip(begun) {
            if out.len() >= enough {
                place.0 = Some(at);
                return false;
            }
            if at > 0 {
                out.push(b',');
            }
            message.write_text(out);
        }
        out.extend_from_slice(after);
        true
    }

    /// The whole line, without LF. Blocks as a read of a file does.
    #[must_use]
    pub fn line(&self) -> Bytes {
        let Parts { before, messages, after } = &*self.0;
        let texts: usize = messages.iter().map(|message| message.text_len() + 1).sum();
        let mut line = Vec::with_capacity(before.len() + texts + after.len());
        self.write_piece(&mut ReplyPlace::default(), usize::MAX, &mut line);
        line.into()
    }

    /// The bytes that it keeps in memory, beside the messages that are there anyway.
    pub(super) fn kept_bytes(&self) -> usize {
        let Parts { before, messages, after } = &*self.0;
        before.len() + size_of_val(messages.as_slice()) + after.len()
    }
}

impl fmt::Debug for LongReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongReply").field("messages", &self.0.messages.len()).finish_non_exhaustive()
    }
}

impl PartialEq for LongReply {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LongReply {}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(messages: &[&str]) -> LongReply {
        let messages = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        LongReply::new(Bytes::from_static(b"{\"m\":["), messages, Bytes::from_static(b"]}"))
    }

    #[test]
    fn pieces_are_the_whole_line() {
        for messages in [&[][..], &["{\"a\":1}"], &["{\"a\":1}", "{\"bb\":\"é\"}", "{}"]] {
            let reply = reply(messages);
            assert_eq!(reply.line(), format!("{{\"m\":[{}]}}", messages.join(",")));
            for enough in [1, 8, 1000] {
                let (mut place, mut pieces, mut is_complete) = (ReplyPlace::default(), Vec::new(), false);
                while !is_complete {
                    let mut piece = Vec::new();
                    is_complete = reply.write_piece(&mut place, enough, &mut piece);
                    assert!(is_complete || piece.len() >= enough);
                    pieces.push(piece);
                }
                assert_eq!(pieces.concat(), reply.line(), "{enough}");
            }
        }
    }
}
