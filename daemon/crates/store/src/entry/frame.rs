//! What stands around the message of a line, and the whole line of an entry without one.

use std::{borrow::Cow, ops::Range};

use crate::time::{iso_timestamp, parse_timestamp, parse_written};

/// A line without its message.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    /// As it is in the file. Boxed, so that the other form does not pay for its room.
    Text(Box<FrameText>),
    /// The form that nearly all lines with a message have: it follows from the entry's ids and the time, in Unix milliseconds.
    Usual(i64),
}

/// The text of a line without its message.
#[derive(Debug, Clone)]
pub(crate) struct FrameText {
    text: Box<str>,
    /// Where the message was.
    message: u32,
    /// The time stamp without its quotes; empty where there is none.
    timestamp: Range<u32>,
}

/// What stands before the message in a line of the usual form, without escapes in its ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsualHead<'a> {
    pub(super) ids: Ids<'a>,
    /// With its quotes.
    pub(super) timestamp: &'a str,
    pub(super) unix_ms: i64,
}

impl<'a> UsualHead<'a> {
    /// Reads the head of a line: it, and what is behind it, the message first. `None` for a line of another form.
    pub(super) fn of(line: &'a str) -> Option<(Self, &'a str)> {
        let (id, rest) = plain(line.strip_prefix(BEFORE_ID)?)?;
        let rest = rest.strip_prefix(BEFORE_PARENT)?;
        let (parent, rest) = match rest.strip_prefix('"') {
            Some(rest) => {
                let (parent, rest) = plain(rest)?;
                (Some(parent), rest.strip_prefix('"')?)
            }
            None => (None, rest.strip_prefix("null")?),
        };
        let (timestamp, rest) = rest.strip_prefix(BEFORE_TIME)?.split_at_checked(TIME_LEN)?;
        let time = timestamp.strip_prefix('"')?.strip_suffix('"')?;
        // What is of this form is written in this form again.
        let unix_ms = parse_written(time)?;
        let rest = rest.strip_prefix(BEFORE_MESSAGE)?;
        Some((Self { ids: Ids { id, parent }, timestamp, unix_ms }, rest))
    }

    /// Whether what is behind the message ends a line of the usual form.
    pub(super) fn is_end(rest: &str) -> bool {
        rest == AFTER_MESSAGE
    }
}

/// The part of a string before its end, and what follows from its last quote on; `None` where an escape or a control character comes before it.
fn plain(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
    let (plain, rest) = text.split_at(end);
    rest.starts_with('"').then_some((plain, rest))
}

/// The ids in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids<'a> {
    pub(super) id: &'a str,
    pub(super) parent: Option<&'a str>,
}

const BEFORE_ID: &str = r#"{"type":"message","id":""#;
const BEFORE_PARENT: &str = r#"","parentId":"#;
const BEFORE_TIME: &str = r#","timestamp":"#;
const BEFORE_MESSAGE: &str = r#","message":"#;
const AFTER_MESSAGE: &str = "}";
/// The length of the time stamps that are written here, with their quotes.
const TIME_LEN: usize = 26;

impl Frame {
    /// The text of a line without what is at `message`. The time stamp is at `timestamp`.
    pub(super) fn text(line: &str, message: Option<Range<usize>>, timestamp: Range<usize>) -> Self {
        let Some(message) = message else { return Self::around(line.into(), 0, timestamp) };
        let text = [&line[..message.start], &line[message.end..]].concat();
        // One behind the message moves up with the rest.
        let timestamp = match timestamp.start < message.start {
            true => timestamp,
            false => timestamp.start - message.len()..timestamp.end - message.len(),
        };
        Self::around(text, message.start, timestamp)
    }

    /// This text, in which a message is left out at `message`. The time stamp is at `timestamp`.
    pub(crate) fn around(text: String, message: usize, timestamp: Range<usize>) -> Self {
        Self::Text(Box::new(FrameText {
            text: text.into(),
            message: short(&(message..message)).start,
            timestamp: short(&timestamp),
        }))
    }

    /// The text where it is kept; empty for the usual form.
    pub(super) fn kept_text(&self) -> &str {
        match self {
            Self::Text(kept) => &kept.text,
            Self::Usual(_) => "",
        }
    }

    /// The text before the message and that behind it, where it is kept.
    pub(super) fn around_message(&self) -> (&str, &str) {
        match self {
            Self::Text(kept) => kept.text.split_at(kept.message as usize),
            Self::Usual(_) => ("", ""),
        }
    }

    /// The time stamp; empty where there is none.
    pub(super) fn timestamp(&self) -> Cow<'_, str> {
        match self {
            Self::Text(kept) => {
                let FrameText { text, timestamp, .. } = &**kept;
                let range = timestamp.start as usize..timestamp.end as usize;
                Cow::Borrowed(text.get(range).unwrap_or_default())
            }
            Self::Usual(unix_ms) => Cow::Owned(iso_timestamp(*unix_ms)),
        }
    }

    pub(super) fn timestamp_ms(&self) -> Option<i64> {
        match self {
            Self::Text(_) => parse_timestamp(&self.timestamp()),
            Self::Usual(unix_ms) => Some(*unix_ms),
        }
    }

    /// Its length in bytes.
    pub(super) fn len(&self, ids: Ids<'_>) -> usize {
        match self {
            Self::Text(kept) => kept.text.len(),
            Self::Usual(_) => {
                let constant = BEFORE_ID.len()
                    + BEFORE_PARENT.len()
                    + BEFORE_TIME.len()
                    + TIME_LEN
                    + BEFORE_MESSAGE.len()
                    + AFTER_MESSAGE.len();
                constant + ids.id.len() + ids.parent.map_or("null".len(), |parent| parent.len() + 2)
            }
        }
    }

    /// Appends it, with what `message` appends in its place.
    pub(super) fn write(&self, ids: Ids<'_>, out: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>)) {
        let Self::Usual(unix_ms) = self else {
            let (before, after) = self.around_message();
            out.extend_from_slice(before.as_bytes());
            message(out);
            return out.extend_from_slice(after.as_bytes());
        };
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put(BEFORE_ID);
        put(ids.id);
        put(BEFORE_PARENT);
        match ids.parent {
            None => put("null"),
            Some(parent) => ["\"", parent, "\""].into_iter().for_each(&mut put),
        }
        put(BEFORE_TIME);
        ["\"", &iso_timestamp(*unix_ms), "\""].into_iter().for_each(&mut put);
        put(BEFORE_MESSAGE);
        message(out);
        out.extend_from_slice(AFTER_MESSAGE.as_bytes());
    }
}

/// Lines are shorter than 4 GiB: [`crate::StoreOptions::max_line_bytes`].
fn short(range: &Range<usize>) -> Range<u32> {
    let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    place(range.start)..place(range.end)
}
