//! Server-sent events with what MCP needs of them beyond the data: ids, and how long to wait before the next connection. Pure.

use std::time::Duration;

/// The largest event, in bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 16 << 20;

/// An event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its data, lines joined by LF.
    pub(crate) data: Vec<u8>,
    /// Whether it is a message: without a name, or named so.
    pub(crate) is_message: bool,
}

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// Splits a stream into events. Every byte is looked at once.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// The chunk before ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    has_begun: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl SseReader {
    /// A reader of a stream that goes on behind an event.
    pub(crate) fn resumed(last_id: String, retry: Option<Duration>) -> Self {
        Self { last_id: Some(last_id), retry, ..Self::default() }
    }

    /// The id of the last event that had one.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The pause that the server asked for.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The bytes of an event that is not complete.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Takes the next bytes; the events that they complete.
    ///
    /// # Errors
    /// An event is too long; nothing more can be read.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\r' | b'\n'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            if std::mem::take(&mut self.after_cr) && text.is_empty() && end == Some(b'\n') {
                continue;
            }
            self.line.extend_from_slice(text);
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(EventTooLong);
            }
            if let Some(end) = end {
                self.after_cr = end == b'\r';
                let line = std::mem::take(&mut self.line);
                events.extend(self.take_line(&line));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let line = match std::mem::replace(&mut self.has_begun, true) {
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            true => line,
        };
        if line.is_empty() {
            let (data, name) = (std::mem::take(&mut self.data), std::mem::take(&mut self.name));
            let is_message = name.is_empty() || name == b"message";
            let has_data = std::mem::take(&mut self.has_data);
            return (has_data && !data.is_empty()).then_some(SseEvent { data, is_message });
        }
        let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(at + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..at] {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            b"id" => {
                let id = std::str::from_utf8(value).ok().filter(|id| !id.contains('\0') && !id.is_empty());
                self.last_id = id.map(str::to_owned).or(self.last_id.take());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(reader: &mut SseReader, bytes: &[u8]) -> Vec<(String, bool)> {
        let events = reader.push(bytes).unwrap();
        events.into_iter().map(|it| (String::from_utf8(it.data).unwrap(), it.is_message)).collect()
    }

    #[test]
    fn events_have_ids_and_pauses() {
        let mut reader = SseReader::default();
        let stream = "\u{feff}id: 1\ndata:\n\nretry: 250\r\nid:2\r\ndata: a\r\ndata: b\r\n\r\n: note\revent: other\rdata: c\r\r";
        let found = texts(&mut reader, stream.as_bytes());
        assert_eq!(found, [("a\nb".to_owned(), true), ("c".to_owned(), false)]);
        assert_eq!((reader.last_id(), reader.retry()), (Some("2"), Some(Duration::from_millis(250))));
    }

    #[test]
    fn an_event_has_a_limit() {
        let mut reader = SseReader::default();
        let chunk = vec![b'x'; 1 << 20];
        assert!((0..16).all(|_| reader.push(&chunk).is_ok()));
        assert_eq!(reader.push(b"more"), Err(EventTooLong));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_chunks(stream in "(data: a|data|id: [12]|event: x|:|\r|\n|\r\n|\n\n){0,20}", at in 0usize..80) {
            let at = at.min(stream.len());
            let (mut whole, mut parts) = (SseReader::default(), SseReader::default());
            let expected = texts(&mut whole, stream.as_bytes());
            let mut found = texts(&mut parts, &stream.as_bytes()[..at]);
            found.extend(texts(&mut parts, &stream.as_bytes()[at..]));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(parts.last_id(), whole.last_id());
        }
    }
}
