//! Reads lines of limited length from a server's output.

use std::io;

use agentd_memory::{MemoryRefused, MemoryReservation};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line: 16 MiB. A longer one is dropped as a whole.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// Bytes of each end that are kept of a line that is too long.
const ENDS: usize = 256;

/// Memory that an empty buffer keeps.
const KEPT: usize = 64 << 10;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextLine {
    /// A line that is not blank, without its end.
    Line(Vec<u8>),
    /// A line that was too long, or for which there was no memory, and that is gone.
    Dropped {
        /// The id of the request that it probably answered.
        id: Option<u64>,
        /// Why there was no memory; `None`: it was too long.
        refused: Option<MemoryRefused>,
    },
    /// The end of the output; whether it came in the middle of a line.
    End {
        /// True in the middle of a line.
        is_partial: bool,
    },
}

/// Splits what a server writes into lines. The last line is charged to the account of memory until the next one is asked for.
pub(crate) struct LineReader<R> {
    source: R,
    charge: MemoryReservation,
    /// Why there was no memory for the line that is dropped.
    refused: Option<MemoryRefused>,
    /// What was read and not given out.
    buffer: Vec<u8>,
    /// Up to here there is no end of a line in the buffer.
    searched: usize,
    max: usize,
    /// What is kept of a line that was too long, while its rest is dropped.
    dropped: Option<Ends>,
}

/// The ends of a line that was too long.
#[derive(Debug, Default)]
struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Ends {
    fn push(&mut self, bytes: &[u8]) {
        if self.head.is_empty() {
            self.head.extend(&bytes[..bytes.len().min(ENDS)]);
        }
        self.tail.extend(&bytes[bytes.len().saturating_sub(ENDS)..]);
        self.tail.drain(..self.tail.len().saturating_sub(ENDS));
    }

    /// The id of the message, where it stands before the result or at the very end. Servers write it in one of these places.
    fn id(&self) -> Option<u64> {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        let before = head.split(r#""result""#).next().unwrap_or_default();
        if head.contains(r#""method""#) {
            return None;
        }
        let number = |text: &str| {
            let digits = text.trim_start().strip_prefix(':')?.trim_start();
            let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
            Some((digits[..end].parse::<u64>().ok()?, digits[end..].trim().to_owned()))
        };
        let at_start = before.split_once(r#""id""#).and_then(|(_, rest)| number(rest));
        let at_end = || tail.rsplit_once(r#""id""#).and_then(|(_, rest)| number(rest));
        match at_start {
            Some((id, _)) => Some(id),
            None => at_end().filter(|(_, rest)| rest == "}").map(|(id, _)| id),
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: R, charge: MemoryReservation) -> Self {
        Self::with_limit(source, charge, MAX_LINE_BYTES)
    }

    fn with_limit(source: R, charge: MemoryReservation, max: usize) -> Self {
        Self { source, charge, refused: None, buffer: Vec::new(), searched: 0, max, dropped: None }
    }

    /// The next line. Cancel safe.
    ///
    /// # Errors
    /// The system's.
    pub(crate) async fn next(&mut self) -> io::Result<NextLine> {
        // The line before is done with.
        self.charge.set(self.buffer.len() as u64);
        loop {
            if let Some(found) = self.take_line() {
                return Ok(found);
            }
            if let Err(refused) = self.charge.grow_to((self.buffer.len() + CHUNK) as u64) {
                self.refused = Some(refused);
                self.drop_line();
            }
            self.buffer.reserve(CHUNK);
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                let is_partial = self.dropped.is_some() || !self.buffer.is_empty();
                self.buffer = Vec::new();
                (self.searched, self.dropped, self.refused) = (0, None, None);
                return Ok(NextLine::End { is_partial });
            }
        }
    }

    /// The next line that is complete in the buffer.
    fn take_line(&mut self) -> Option<NextLine> {
        while let Some(length) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let rest = self.buffer.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if self.dropped.is_some() || line.len() > self.max {
                let mut ends = self.dropped.take().unwrap_or_default();
                ends.push(&line);
                return Some(NextLine::Dropped { id: ends.id(), refused: self.refused.take() });
            }
            if !line.trim_ascii().is_empty() {
                return Some(NextLine::Line(line));
            }
        }
        self.searched = self.buffer.len();
        if self.dropped.is_some() || self.buffer.len() > self.max {
            self.drop_line();
        }
        None
    }

    /// Drops what there is of a line, and its rest as it comes; only its ends stay.
    fn drop_line(&mut self) {
        self.dropped.get_or_insert_default().push(&self.buffer);
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        self.searched = 0;
        self.charge.set(0);
    }
}

#[cfg(test)]
mod tests {
    use agentd_memory::{AddressSpace, MemoryAccount, MemoryPurpose};
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Everything that a reader of these chunks gives.
    async fn read(chunks: &[Vec<u8>], max: usize) -> Vec<NextLine> {
        let (mut write, read) = tokio::io::duplex(8);
        let chunks = chunks.to_vec();
        let writing = tokio::spawn(async move {
            for chunk in chunks {
                write.write_all(&chunk).await.unwrap();
            }
        });
        let charge = MemoryAccount::default().open(MemoryPurpose::Servers);
        let mut lines = LineReader::with_limit(read, charge, max);
        let mut all = Vec::new();
        loop {
            let next = lines.next().await.unwrap();
            let is_end = matches!(next, NextLine::End { .. });
            all.push(next);
            if is_end {
                break;
            }
        }
        writing.await.unwrap();
        all
    }

    fn line(text: &str) -> NextLine {
        NextLine::Line(text.into())
    }

    #[tokio::test]
    async fn long_lines_are_dropped_and_the_others_stay() {
        let text = format!("one\r\n\n  \n{}\ntwo\nrest", "x".repeat(20));
        let lines = read(&[text.into_bytes()], 10).await;
        assert_eq!(
            lines,
            [
                line("one"),
                NextLine::Dropped { id: None, refused: None },
                line("two"),
                NextLine::End { is_partial: true }
            ]
        );
        assert_eq!(read(&[b"a\n".to_vec()], 10).await, [line("a"), NextLine::End { is_partial: false }]);
    }

    #[tokio::test]
    async fn the_request_that_a_long_line_answered_is_known() {
        let long = "x".repeat(5000);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"id":1,"text":"{long}"}}}}"#), Some(7)),
            (format!(r#"{{"result":{{"id":1,"text":"{long}"}},"jsonrpc":"2.0","id": 8 }}"#), Some(8)),
            (format!(r#"{{"result":{{"text":"{long}","id":1}}}}"#), None),
            (format!(r#"{{"method":"x","id":1,"params":"{long}"}}"#), None),
        ] {
            let lines = read(&[text.clone().into_bytes(), b"\n".to_vec()], 100).await;
            assert_eq!(lines[0], NextLine::Dropped { id, refused: None }, "{}", &text[..60]);
        }
    }

    #[tokio::test]
    async fn a_line_without_memory_is_dropped_and_the_others_stay() {
        // A megabyte for what servers send.
        let account = MemoryAccount::new(8 << 20, AddressSpace::unlimited());
        let long = format!("{{\"id\":7,\"result\":\"{}\"}}", "x".repeat(2 << 20));
        let (mut write, read) = tokio::io::duplex(1 << 16);
        let writing = tokio::spawn(async move {
            for line in [&long, "short"] {
                write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        });
        let mut lines = LineReader::new(read, account.open(MemoryPurpose::Servers));
        let dropped = lines.next().await.unwrap();
        let NextLine::Dropped { id: Some(7), refused: Some(refused) } = dropped else {
            panic!("{dropped:?}")
        };
        assert!(refused.to_string().contains("messages of MCP servers"), "{refused}");
        assert_eq!(lines.next().await.unwrap(), line("short"));
        writing.await.unwrap();
        assert!(account.used(MemoryPurpose::Servers) < 1 << 20);
        drop(lines);
        assert_eq!(account.used(MemoryPurpose::Servers), 0);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_output_is_cut(
            text in "[a-c\n\r]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let chunks: Vec<Vec<u8>> = at.windows(2).map(|cut| text.as_bytes()[cut[0]..cut[1]].to_vec()).collect();
            let whole = runtime.block_on(read(&[text.as_bytes().to_vec()], 12));
            prop_assert_eq!(runtime.block_on(read(&chunks, 12)), whole);
        }
    }
}
