//! An incremental parser of server-sent events (the WHATWG HTML standard, "Server-sent events").
//!
//! Every byte is looked at once, however the stream is cut into chunks. `id` and `retry` mean nothing here: a paid
//! request is never sent again by a library.

use std::borrow::Cow;

/// The largest event, in bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// An event larger than [`MAX_EVENT_BYTES`] (or the limit given).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {limit} bytes")]
pub(crate) struct EventTooLong {
    limit: usize,
}

/// The parser.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct SseParser {
    /// The line that is not complete yet.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    first_line: bool,
    /// The chunk before ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    max_event_bytes: usize,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    pub(crate) fn with_limit(max_event_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            first_line: true,
            after_cr: false,
            max_event_bytes,
        }
    }

    /// The size of the kept part of an incomplete event, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Takes the next bytes and calls `on_event(name, data)` for each event that they complete. The name is empty
    /// unless the event has one.
    ///
    /// # Errors
    /// Fails when an event is too long; the parser is of no use then.
    pub(crate) fn feed(
        &mut self,
        mut chunk: &[u8],
        on_event: &mut impl FnMut(&str, &str),
    ) -> Result<(), EventTooLong> {
        if self.after_cr && !chunk.is_empty() {
            self.after_cr = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) {
            self.check_size(end)?;
            if self.line.is_empty() {
                self.take_line(&chunk[..end], on_event);
            } else {
                self.line.extend_from_slice(&chunk[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, on_event);
                self.line = line;
                self.line.clear();
            }
            let cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            if cr {
                self.after_cr = chunk.is_empty();
                chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            }
        }
        self.check_size(chunk.len())?;
        self.line.extend_from_slice(chunk);
        Ok(())
    }

    /// Treats the end of the stream as the end of the last event, which some servers leave out. The last event may be incomplete.
    pub(crate) fn finish(&mut self, on_event: &mut impl FnMut(&str, &str)) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, on_event);
        }
        self.take_line(b"", on_event);
    }

    fn check_size(&self, more: usize) -> Result<(), EventTooLong> {
        let limit = self.max_event_bytes;
        if self.line.len() + self.data.len() + more > limit { Err(EventTooLong { limit }) } else { Ok(()) }
    }

    fn take_line(&mut self, mut line: &[u8], on_event: &mut impl FnMut(&str, &str)) {
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(on_event);
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.push_str(&text(value));
            }
            // A comment, `id`, `retry`, or a field that the standard tells us to ignore.
            _ => {}
        }
    }

    fn dispatch(&mut self, on_event: &mut impl FnMut(&str, &str)) {
        if std::mem::take(&mut self.has_data) {
            on_event(&self.name, &text(&self.data));
            self.data.clear();
        }
        self.name.clear();
    }
}

/// The text of bytes, which nearly always are text: that is found out faster than what else they are.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut collect = |name: &str, data: &str| events.push((name.to_owned(), data.to_owned()));
        for chunk in chunks {
            parser.feed(chunk, &mut collect).unwrap();
        }
        parser.finish(&mut collect);
        events
    }

    fn check(stream: &str, expected: &[(&str, &str)]) {
        let found = events([stream.as_bytes()]);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, data)| (&**name, &**data)).collect();
        assert_eq!(found, expected, "{stream:?}");
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        check("data: a\n\ndata:b\r\n\r\ndata:  c\r\r", &[("", "a"), ("", "b"), ("", " c")]);
        check("\u{feff}data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]);
        check(": ping\n\nevent: x\ndata: 1\nid: 7\nretry: 3\nother\n\ndata: 2\n\n", &[("x", "1"), ("", "2")]);
        check("event: lost\n\ndata: kept\n\n", &[("", "kept")]);
        check("data: a: b\n\n", &[("", "a: b")]);
        check("data:\n\n", &[("", "")]);
        check("data: last line without an end", &[("", "last line without an end")]);
        check("\n\n\n", &[]);
    }

    #[test]
    fn broken_utf8_is_replaced() {
        assert_eq!(events([&b"data: a\xffb\n\n"[..]]), [(String::new(), "a\u{fffd}b".to_owned())]);
    }

    #[test]
    fn an_event_has_a_size_limit() {
        let mut parser = SseParser::with_limit(10);
        assert!(parser.feed(b"data: 1234\n\n", &mut |_, _| ()).is_ok());
        assert!(parser.feed(b"data: 12345", &mut |_, _| ()).is_err());
        let mut parser = SseParser::with_limit(10);
        assert!(parser.feed(b"data: 12\ndata: 34\ndata: 56\n", &mut |_, _| ()).is_err());
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in prop::collection::vec("(data: ?|event: ?|: |)[aé😀:\u{feff}]{0,4}(\n|\r|\r\n)", 0..20),
            cuts in prop::collection::vec(1..9_usize, 1..40),
        ) {
            let stream = lines.concat().into_bytes();
            let mut chunks = Vec::new();
            let mut rest = &stream[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, behind) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = behind;
            }
            prop_assert_eq!(events(chunks), events([&stream[..]]));
        }
    }
}
