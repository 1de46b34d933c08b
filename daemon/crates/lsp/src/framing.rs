//! The framing of the protocol: a header with the length of the body, a blank line, the body.

use std::io;

use agentd_memory::{MemoryRefused, MemoryReservation};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest message that is read: 32 MiB. A longer one is dropped as a whole.
pub(crate) const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// The longest header, with whatever a server prints before it: 16 KiB.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// Memory that an empty buffer keeps.
const KEPT: usize = 64 << 10;

/// A message of a server, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextMessage {
    /// The body of a message.
    Body(Vec<u8>),
    /// A message that was too long, or for which there was no memory, and that is gone.
    Dropped {
        /// Its length in bytes.
        length: u64,
        /// Why there was no memory; `None`: it was too long.
        refused: Option<MemoryRefused>,
    },
    /// The end of the output.
    End {
        /// True in the middle of a message.
        is_partial: bool,
    },
}

/// Splits what a server writes into messages. The last one is charged to the account of memory until the next one is asked for.
pub(crate) struct MessageReader<R> {
    source: R,
    charge: MemoryReservation,
    buffer: Vec<u8>,
    /// Bytes of a dropped body that are still to come.
    skipped: u64,
    max: usize,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    pub(crate) fn new(source: R, charge: MemoryReservation) -> Self {
        Self::with_limit(source, charge, MAX_MESSAGE_BYTES)
    }

    fn with_limit(source: R, charge: MemoryReservation, max: usize) -> Self {
        Self { source, charge, buffer: Vec::new(), skipped: 0, max }
    }

    /// The next message. Cancel safe.
    ///
    /// # Errors
    /// The system's; `InvalidData` for an output that is not of this protocol.
    pub(crate) async fn next(&mut self) -> io::Result<NextMessage> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        self.charge.set(self.buffer.len() as u64);
        loop {
            if self.skipped > 0 {
                let drained = self.skipped.min(self.buffer.len() as u64);
                // Fits: it is at most the length of the buffer.
                self.buffer.drain(..drained as usize);
                self.skipped -= drained;
                if self.skipped > 0 {
                    self.buffer.clear();
                    if self.fill().await? == 0 {
                        return Ok(NextMessage::End { is_partial: true });
                    }
                    continue;
                }
            }
            match header(&self.buffer)? {
                None => {}
                Some((start, length)) if length > self.max as u64 => {
                    self.buffer.drain(..start);
                    self.skipped = length;
                    return Ok(NextMessage::Dropped { length, refused: None });
                }
                Some((start, length)) => {
                    // Fits: it is below `max`.
                    let end = start + length as usize;
                    if self.buffer.len() >= end {
                        let rest = self.buffer.split_off(end);
                        let mut body = std::mem::replace(&mut self.buffer, rest);
                        body.drain(..start);
                        return Ok(NextMessage::Body(body));
                    }
                    if let Err(refused) = self.charge.grow_to(end as u64) {
                        self.buffer.drain(..start);
                        self.skipped = length;
                        return Ok(NextMessage::Dropped { length, refused: Some(refused) });
                    }
                }
            }
            if self.fill().await? == 0 {
                return Ok(NextMessage::End { is_partial: !self.buffer.is_empty() });
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(CHUNK);
        self.source.read_buf(&mut self.buffer).await
    }
}

/// Where the body of the first message begins, and its length; `None` while its header is not complete. Lines that are no field of a
/// header are passed over: some servers print a greeting.
fn header(bytes: &[u8]) -> io::Result<Option<(usize, u64)>> {
    let mut length = None;
    let mut start = 0;
    while let Some(end) = bytes[start..].iter().take(MAX_HEADER_BYTES).position(|byte| *byte == b'\n') {
        let line = bytes[start..start + end].trim_ascii();
        start += end + 1;
        if line.is_empty() {
            if let Some(length) = length {
                return Ok(Some((start, length)));
            }
            continue;
        }
        if let Ok(text) = std::str::from_utf8(line)
            && let Some((name, value)) = text.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            let value = value.trim();
            let parsed = value.parse::<u64>();
            length = Some(parsed.map_err(|_| invalid(format!("Content-Length is no number: {value:?}")))?);
        }
        if start > MAX_HEADER_BYTES {
            break;
        }
    }
    if bytes.len() > MAX_HEADER_BYTES {
        return Err(invalid("it is not the language server protocol: no header in 16 KiB".to_owned()));
    }
    Ok(None)
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// A message with its header.
pub(crate) fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use agentd_memory::{AddressSpace, MemoryAccount, MemoryPurpose};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Gives the bytes in pieces of the given sizes.
    struct Pieces {
        bytes: Vec<u8>,
        sizes: Vec<usize>,
        at: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let size = self.sizes.pop().unwrap_or(usize::MAX).max(1);
            let end = (self.at.saturating_add(size)).min(self.bytes.len()).min(self.at + buffer.remaining());
            buffer.put_slice(&self.bytes[self.at..end]);
            self.at = end;
            std::task::Poll::Ready(Ok(()))
        }
    }

    fn read_all(bytes: Vec<u8>, sizes: Vec<usize>, max: usize) -> (Vec<NextMessage>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let charge = MemoryAccount::new(1 << 30, AddressSpace::unlimited()).open(MemoryPurpose::Servers);
            let mut reader = MessageReader::with_limit(Pieces { bytes, sizes, at: 0 }, charge, max);
            let mut found = Vec::new();
            loop {
                match reader.next().await {
                    Ok(NextMessage::End { is_partial }) => return (found, is_partial),
                    Ok(next) => found.push(next),
                    Err(_) => return (found, true),
                }
            }
        })
    }

    #[test]
    fn a_greeting_and_further_fields_are_passed_over() {
        let text = "Starting…\n\nContent-Type: x\r\ncontent-length: 2\r\n\r\n{}Content-Length:3\n\n{ }";
        let (found, is_partial) = read_all(text.into(), Vec::new(), 100);
        assert_eq!(found, [NextMessage::Body(b"{}".to_vec()), NextMessage::Body(b"{ }".to_vec())]);
        assert!(!is_partial);
    }

    #[test]
    fn a_message_that_is_too_long_is_dropped_and_the_next_one_read() {
        let mut bytes = framed(&json!("x".repeat(500)));
        bytes.extend(framed(&json!({})));
        let (found, is_partial) = read_all(bytes, vec![7; 100], 100);
        let dropped = NextMessage::Dropped { length: 502, refused: None };
        assert_eq!((found, is_partial), (vec![dropped, NextMessage::Body(b"{}".to_vec())], false));
    }

    #[test]
    fn an_output_of_another_kind_is_an_error() {
        let (found, is_error) = read_all(vec![b'a'; 20 << 10], Vec::new(), 100);
        assert!(found.is_empty() && is_error);
        assert!(read_all(b"Content-Length: many\r\n\r\n{}".to_vec(), Vec::new(), 100).1);
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_they_are_cut(
            texts in prop::collection::vec("\\PC{0,40}", 0..5),
            sizes in prop::collection::vec(1_usize..30, 0..60),
        ) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| framed(&json!(text))).collect();
            let (found, is_partial) = read_all(bytes, sizes, 1000);
            let expected: Vec<NextMessage> =
                texts.iter().map(|text| NextMessage::Body(json!(text).to_string().into_bytes())).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(!is_partial);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_all(bytes, Vec::new(), 64);
        }
    }
}
