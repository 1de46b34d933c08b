//! Cutting the bytes of a file into lines, whatever became of them.

use std::io::{self, Read};

use memchr::memchr2;

/// The bytes that are read at once: enough to make a system call worth it, little enough for the cache.
const CHUNK_BYTES: usize = 256 << 10;

/// The position of a line in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinePosition {
    /// The line, from 1: one more than the LFs before it.
    pub line: u64,
    /// Its first byte, from 0.
    pub byte: u64,
    /// The length of the line without its LF.
    pub bytes: u64,
}

/// A line of a file, or a part of one that zeros cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) place: LinePosition,
    pub(crate) content: Content<'a>,
}

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// At least one byte, without the LF.
    Bytes(&'a [u8]),
    /// The same, found to be text.
    Text(&'a str),
    /// More than the limit; nothing of it was kept.
    TooLong,
    /// Nothing but zeros, as a file system leaves them that lost power: no text has any. They end what stands before them, so
    /// that they take nothing along, however many they are.
    Zeros,
}

impl<'a> Content<'a> {
    /// Its bytes, where there are any.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Text(text) => Some(text.as_bytes()),
            Self::TooLong | Self::Zeros => None,
        }
    }
}

/// The end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There was not one byte.
    NothingRead,
    /// With LF.
    Newline,
    /// Without LF.
    MidLine,
}

/// Reads to the end and hands out each line that is not empty, the last one also when it lacks its LF. Memory is bounded by
/// the limit, and each byte is looked at once.
///
/// # Errors
/// What `reader` reports.
pub(crate) fn each_line(
    reader: &mut dyn Read,
    max_bytes: usize,
    sink: &mut dyn FnMut(Line<'_>),
) -> io::Result<Ending> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut cutter = Cutter { max_bytes, sink, partial: Vec::new(), at: START, run: Run::Text };
    let mut ending = Ending::NothingRead;
    loop {
        let count = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        ending = if chunk[..count].ends_with(b"\n") { Ending::Newline } else { Ending::MidLine };
        cutter.take(&chunk[..count]);
    }
    cutter.end(&[]);
    Ok(ending)
}

const START: LinePosition = LinePosition { line: 1, byte: 0, bytes: 0 };

/// The line that the bytes in hand belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Text,
    /// Text that is over the limit.
    Long,
    Zeros,
}

struct Cutter<'a> {
    max_bytes: usize,
    sink: &'a mut dyn FnMut(Line<'_>),
    /// The beginning of a line that goes on in the next chunk.
    partial: Vec<u8>,
    /// The piece in hand: where it begins, and how much of it was in earlier chunks.
    at: LinePosition,
    run: Run,
}

impl Cutter<'_> {
    fn take(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            if self.run == Run::Zeros {
                let zeros = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
                self.at.bytes += zeros as u64;
                rest = &rest[zeros..];
                if !rest.is_empty() {
                    self.end(&[]);
                }
                continue;
            }
            let Some(end) = memchr2(b'\n', 0, rest) else {
                self.keep(rest);
                return;
            };
            self.end(&rest[..end]);
            if rest[end] == b'\n' {
                self.at = LinePosition { line: self.at.line + 1, byte: self.at.byte + 1, bytes: 0 };
                rest = &rest[end + 1..];
            } else {
                self.run = Run::Zeros;
                rest = &rest[end..];
            }
        }
    }

    /// Keeps the beginning of a line.
    fn keep(&mut self, bytes: &[u8]) {
        self.at.bytes += bytes.len() as u64;
        if self.run == Run::Long || self.partial.len() + bytes.len() > self.max_bytes {
            self.run = Run::Long;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// Ends the piece in hand, of which `last` is the rest.
    fn end(&mut self, last: &[u8]) {
        self.at.bytes += last.len() as u64;
        let content = match self.run {
            Run::Zeros => Content::Zeros,
            Run::Text if self.partial.len() + last.len() <= self.max_bytes => {
                if self.partial.is_empty() {
                    Content::Bytes(last)
                } else {
                    self.partial.extend_from_slice(last);
                    Content::Bytes(&self.partial)
                }
            }
            Run::Text | Run::Long => Content::TooLong,
        };
        if self.at.bytes > 0 {
            (self.sink)(Line { place: self.at, content });
        }
        self.partial.clear();
        self.run = Run::Text;
        self.at = LinePosition { byte: self.at.byte + self.at.bytes, bytes: 0, ..self.at };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads in pieces of any size.
    struct Pieces<'a>(&'a [u8], Vec<usize>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1.pop().unwrap_or(3).clamp(1, buffer.len()).min(self.0.len());
            let (piece, rest) = self.0.split_at(size);
            buffer[..size].copy_from_slice(piece);
            self.0 = rest;
            Ok(size)
        }
    }

    /// A line as it is handed out, with its bytes where there are any.
    #[derive(Debug, PartialEq)]
    struct Kept(LinePosition, Option<Vec<u8>>, bool);

    fn cut(bytes: &[u8], sizes: Vec<usize>, max: usize) -> (Vec<Kept>, Ending) {
        let mut lines = Vec::new();
        let ending = each_line(&mut Pieces(bytes, sizes), max, &mut |line| {
            lines.push(match line.content {
                Content::Bytes(bytes) => Kept(line.place, Some(bytes.to_vec()), false),
                Content::Text(text) => Kept(line.place, Some(text.as_bytes().to_vec()), false),
                Content::TooLong => Kept(line.place, None, false),
                Content::Zeros => Kept(line.place, None, true),
            });
        });
        (lines, ending.unwrap())
    }

    /// The same result by looking at every byte.
    fn expected(bytes: &[u8], max: usize) -> Vec<Kept> {
        let mut lines = Vec::new();
        let mut number = 1;
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'\n' {
                (number, at) = (number + 1, at + 1);
                continue;
            }
            let is_zeros = bytes[at] == 0;
            let end = (at..bytes.len())
                .find(|end| bytes[*end] == b'\n' || (bytes[*end] == 0) != is_zeros)
                .unwrap_or(bytes.len());
            let place = LinePosition { line: number, byte: at as u64, bytes: (end - at) as u64 };
            let kept = (!is_zeros && end - at <= max).then(|| bytes[at..end].to_vec());
            lines.push(Kept(place, kept, is_zeros));
            at = end;
        }
        lines
    }

    #[test]
    fn megabytes_of_zeros_take_no_line_along() {
        let text = [b"one\ntwo".as_slice(), &vec![0; 3 << 20], b"three\nfour"].concat();
        let (lines, ending) = cut(&text, vec![CHUNK_BYTES; 99], 100);
        assert_eq!(lines, expected(&text, 100));
        assert_eq!((lines.len(), ending), (5, Ending::MidLine));
        assert_eq!(lines[3].0, LinePosition { line: 2, byte: 7 + (3 << 20), bytes: 5 });
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_come(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0), any::<u8>()], 0..60),
            sizes in proptest::collection::vec(1usize..9, 0..40),
            max in 1usize..12,
        ) {
            let (lines, ending) = cut(&bytes, sizes, max);
            prop_assert_eq!(lines, expected(&bytes, max));
            let wanted = match bytes.last() { None => Ending::NothingRead, Some(b'\n') => Ending::Newline, _ => Ending::MidLine };
            prop_assert_eq!(ending, wanted);
        }
    }
}
