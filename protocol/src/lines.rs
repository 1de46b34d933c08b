//! Splitting bytes into lines: at LF alone, with a cap, and surviving whatever comes.

use std::mem;

use memchr::memchr;

use crate::error::{ErrorCode, Failure};

/// The default cap of one line: 64 MiB.
pub const DEFAULT_MAX_LINE_BYTES: usize = 64 << 20;

/// A line up to this many bytes needs no leave to grow: [`LineSplitter::push_within`] asks for more than that alone.
pub const SMALL_LINE_BYTES: usize = 64 << 10;

/// A line, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its LF, and without one CR before it. What is not UTF-8 in it reads as U+FFFD.
    Text(String),
    /// A line longer than the cap. It was skipped to its LF, and its bytes were not kept.
    TooLong,
    /// A line that was given up before its end, and why. The rest of it is skipped to its LF.
    Refused(Box<Failure>),
}

/// The treatment of the bytes up to the next LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are kept.
    Keep,
    /// They are skipped, and the line is told as too long at its end.
    TooLong,
    /// They are skipped, and the line was told of.
    Told,
}

/// Collects bytes as they arrive and hands out the lines among them.
///
/// Memory is bounded by the cap: of a longer line nothing is kept. U+2028, U+2029 and U+0085 are data, never
/// separators, and a character may straddle two reads.
#[derive(Debug)]
pub struct LineSplitter {
    max_bytes: usize,
    partial: Vec<u8>,
    mode: Mode,
}

impl LineSplitter {
    /// A splitter for lines of at most `max_bytes` bytes, LF not counted.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, partial: Vec::new(), mode: Mode::Keep }
    }

    /// Takes the next bytes and appends the lines that they complete to `lines`.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) {
        self.push_within(bytes, lines, |_| Ok(()));
    }

    /// The same, and asks `room` before a line takes more memory: for so many bytes in all, each time about twice as many. A line that gets none is
    /// given up with that failure.
    pub fn push_within(
        &mut self,
        mut bytes: &[u8],
        lines: &mut Vec<Line>,
        mut room: impl FnMut(usize) -> Result<(), Failure>,
    ) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.extend(&bytes[..end], lines, &mut room);
            lines.extend(self.take());
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, lines, &mut room);
    }

    /// The last line, when the input ended without LF.
    pub fn finish(&mut self) -> Option<Line> {
        if self.mode == Mode::Keep && self.partial.is_empty() { None } else { self.take() }
    }

    /// Whether a line has begun and is kept.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Gives up the line that has begun: what there is of it goes, and the rest is skipped to its LF.
    pub fn give_up(&mut self) {
        if self.has_begun() {
            self.partial = Vec::new();
            self.mode = Mode::Told;
        }
    }

    /// The memory that it has taken for a line that is not complete yet, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    fn extend(
        &mut self,
        bytes: &[u8],
        lines: &mut Vec<Line>,
        room: &mut impl FnMut(usize) -> Result<(), Failure>,
    ) {
        if self.mode != Mode::Keep {
            return;
        }
        let length = self.partial.len() + bytes.len();
        if length > self.max_bytes {
            self.mode = Mode::TooLong;
            self.partial = Vec::new();
        } else if length <= self.partial.capacity() {
            self.partial.extend_from_slice(bytes);
        } else {
            match self.grow(length, room) {
                Ok(()) => self.partial.extend_from_slice(bytes),
                Err(failure) => {
                    self.mode = Mode::Told;
                    self.partial = Vec::new();
                    lines.push(Line::Refused(Box::new(failure)));
                }
            }
        }
    }

    /// Makes room for a line of `length` bytes.
    fn grow(
        &mut self,
        length: usize,
        room: &mut impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let capacity = self.partial.capacity().saturating_mul(2).clamp(length, self.max_bytes);
        if capacity > SMALL_LINE_BYTES {
            room(capacity)?;
        }
        // A program whose memory is at its end must not end for a line.
        self.partial.try_reserve_exact(capacity - self.partial.len()).map_err(|_| {
            let text =
                format!("Failed to parse command: the system has no memory for a line of {length} bytes");
            Failure::new(ErrorCode::LimitReached, text)
                .hint("The line was skipped. Send less at once, or free memory on the machine of the daemon.")
        })
    }

    /// The line that has ended; nothing where it was told of before.
    fn take(&mut self) -> Option<Line> {
        match mem::replace(&mut self.mode, Mode::Keep) {
            Mode::Keep => {}
            Mode::TooLong => return Some(Line::TooLong),
            Mode::Told => return None,
        }
        let mut bytes = mem::take(&mut self.partial);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        // A client that lets a byte of another encoding through still gets its answer, with the `id` that it waits for.
        let text = String::from_utf8(bytes);
        Some(Line::Text(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())))
    }
}

/// Appends `line` to `out` with U+2028 and U+2029 as JSON escapes, then LF.
///
/// Readers that split at every Unicode line separator (Node's readline is one) break on the raw characters; JSON allows
/// the escape, and inside a JSON line they can stand only in strings.
pub fn write_line(line: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    // Both characters are E2 80 A8 or E2 80 A9 in UTF-8; E2 is rare in most text, so this is one fast scan.
    let mut from = 0;
    while let Some(at) = memchr(0xE2, &rest[from..]).map(|at| at + from) {
        match rest.get(at..at + 3) {
            Some([_, 0x80, last @ (0xA8 | 0xA9)]) => {
                out.extend_from_slice(&rest[..at]);
                out.extend_from_slice(if *last == 0xA8 { b"\\u2028" } else { b"\\u2029" });
                rest = &rest[at + 3..];
                from = 0;
            }
            _ => from = at + 1,
        }
    }
    out.extend_from_slice(rest);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(max: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let (mut splitter, mut lines) = (LineSplitter::new(max), Vec::new());
        chunks.iter().for_each(|chunk| splitter.push(chunk, &mut lines));
        lines.extend(splitter.finish());
        lines
    }

    fn text(line: &str) -> Line {
        Line::Text(line.to_owned())
    }

    #[test]
    fn splits_at_lf_alone() {
        let lines = split(99, &["a\r\n\u{2028}b\u{85}\r\r\n".as_bytes(), b"\n", b"rest"]);
        assert_eq!(lines, [text("a"), text("\u{2028}b\u{85}\r"), text(""), text("rest")]);
    }

    #[test]
    fn survives_long_and_bad_lines() {
        let lines = split(4, &[b"12345", b"67\nok\na\xFF\nfour\n55555"]);
        assert_eq!(lines, [Line::TooLong, text("ok"), text("a\u{fffd}"), text("four"), Line::TooLong]);
    }

    #[test]
    fn a_line_without_room_is_told_of_once_and_skipped() {
        let (mut splitter, mut lines) = (LineSplitter::new(1 << 20), Vec::new());
        let mut asked = Vec::new();
        let failure = || Failure::new(ErrorCode::LimitReached, "full");
        for chunk in [&b"small\n"[..], &[b'x'; 60_000], &[b'x'; 60_000], &[b'x'; 60_000], b"rest\nnext\n"] {
            splitter.push_within(chunk, &mut lines, |bytes| {
                asked.push(bytes);
                if bytes > 120_000 { Err(failure()) } else { Ok(()) }
            });
        }
        assert_eq!(asked, [120_000, 240_000]);
        assert_eq!(lines, [text("small"), Line::Refused(Box::new(failure())), text("next")]);
        assert!(splitter.held_bytes() < 1000);
    }

    #[test]
    fn a_line_that_is_given_up_is_skipped_to_its_end() {
        let (mut splitter, mut lines) = (LineSplitter::new(100), Vec::new());
        splitter.give_up();
        splitter.push(b"a\nbegun", &mut lines);
        assert!(splitter.has_begun());
        splitter.give_up();
        assert!(!splitter.has_begun() && splitter.held_bytes() == 0);
        splitter.push(b" and more\nb\nlast", &mut lines);
        splitter.give_up();
        assert_eq!((lines, splitter.finish()), (vec![text("a"), text("b")], None));
    }

    #[test]
    fn separators_are_escaped() {
        let mut out = Vec::new();
        write_line("\"a\u{2028}b\u{2029}\u{201c}\"".as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\u2028b\\u2029\u{201c}\"\n");
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..80),
                                    cuts in proptest::collection::vec(0usize..80, 0..6), max in 1usize..20) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(max, &chunks), split(max, &[&bytes]));
        }

        #[test]
        fn written_lines_stay_the_same_json(value in any::<String>()) {
            let line = serde_json::to_string(&value).unwrap();
            let mut out = Vec::new();
            write_line(line.as_bytes(), &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), value);
        }
    }
}
