//! Keeps the last lines of a growing text.

use agentd_protocol::{
    text_bounds,
    tool::{TruncatedBy, Truncation},
};
use memchr::{memchr_iter, memrchr, memrchr_iter};

use crate::bounded_text::TailBuffer;

/// The most lines that a model is shown of an output.
pub const MAX_LINES: usize = 2000;

/// The most bytes of UTF-8 that a model is shown of an output: 50 KiB.
pub const MAX_BYTES: usize = 50 * 1024;

/// The end of a text of any length, and counts of the rest: what truncating to the tail needs.
///
/// Each piece costs time in proportion to its length, and memory stays near 100 KB.
#[derive(Debug, Clone)]
pub struct TailWindow {
    end: TailBuffer,
    total_bytes: u64,
    newlines: u64,
    /// Bytes after the last LF.
    open_line: u64,
    /// Bytes of the line that the last LF ended, without the LF.
    closed_line: u64,
}

impl Default for TailWindow {
    fn default() -> Self {
        // One byte more than the limit shows that a line does not fit; another is a trailing LF that is not shown.
        let end = TailBuffer::new(MAX_BYTES + 2);
        Self { end, total_bytes: 0, newlines: 0, open_line: 0, closed_line: 0 }
    }
}

impl TailWindow {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to the text.
    pub fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.total_bytes += bytes.len() as u64;
        self.newlines += memchr_iter(b'\n', bytes).count() as u64;
        match memrchr(b'\n', bytes) {
            None => self.open_line += bytes.len() as u64,
            Some(last) => {
                self.closed_line = match memrchr(b'\n', &bytes[..last]) {
                    None => self.open_line + last as u64,
                    Some(previous) => (last - previous - 1) as u64,
                };
                self.open_line = (bytes.len() - last - 1) as u64;
            }
        }
        self.end.push(text);
    }

    /// Bytes so far.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Lines so far; a trailing LF adds none.
    #[must_use]
    pub fn total_lines(&self) -> u64 {
        self.newlines + u64::from(self.open_line > 0)
    }

    /// Bytes of the last line, without its LF.
    #[must_use]
    pub fn last_line_bytes(&self) -> u64 {
        if self.open_line > 0 { self.open_line } else { self.closed_line }
    }

    /// Whether the text is over one of the limits.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.total_bytes > MAX_BYTES as u64 || self.total_lines() > MAX_LINES as u64
    }

    /// The last whole lines within the limits, or the last characters of the last line when not even that fits. A text
    /// within the limits comes back unchanged, a cut one without its trailing LF.
    #[must_use]
    pub fn snapshot(&self) -> Truncation {
        if !self.is_truncated() {
            return self.truncation(self.end.as_str(), self.total_lines(), None, false);
        }
        let text = self.end.as_str();
        let text = text.strip_suffix('\n').unwrap_or(text);
        // A line that starts before this byte does not fit. If the window starts inside a line, it starts before this byte.
        let floor = text.len().saturating_sub(MAX_BYTES);
        let breaks = memrchr_iter(b'\n', text.as_bytes()).map(|at| at + 1).chain([0]);
        let fitting = breaks.take_while(|start| *start >= floor).take(MAX_LINES);
        let (lines, start) = fitting.fold((0, None), |(lines, _), start| (lines + 1, Some(start)));
        match start {
            None => {
                let start = text_bounds::ceil(text, floor);
                self.truncation(&text[start..], 1, Some(TruncatedBy::Bytes), true)
            }
            Some(start) => {
                // When all lines are shown, only the trailing LF had no room.
                let by = if lines == MAX_LINES as u64 && lines < self.total_lines() {
                    TruncatedBy::Lines
                } else {
                    TruncatedBy::Bytes
                };
                self.truncation(&text[start..], lines, Some(by), false)
            }
        }
    }

    fn truncation(&self, content: &str, lines: u64, by: Option<TruncatedBy>, partial: bool) -> Truncation {
        Truncation {
            content: content.into(),
            truncated: by.is_some(),
            truncated_by: by,
            total_lines: self.total_lines(),
            total_bytes: self.total_bytes,
            output_lines: lines,
            output_bytes: content.len() as u64,
            last_line_partial: partial,
            first_line_exceeds_limit: false,
            max_lines: MAX_LINES as u64,
            max_bytes: MAX_BYTES as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The specification, applied to the whole text.
    fn naive(text: &str) -> (String, Option<TruncatedBy>, usize, bool) {
        let body = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<&str> = if text.is_empty() { Vec::new() } else { body.split('\n').collect() };
        if lines.len() <= MAX_LINES && text.len() <= MAX_BYTES {
            return (text.into(), None, lines.len(), false);
        }
        let mut kept: Vec<&str> = Vec::new();
        for line in lines.iter().rev() {
            let size: usize = kept.iter().map(|line| line.len() + 1).sum::<usize>() + line.len();
            if kept.len() == MAX_LINES || size > MAX_BYTES {
                break;
            }
            kept.push(line);
        }
        if kept.is_empty() {
            let last = lines[lines.len() - 1];
            let start = (last.len() - MAX_BYTES..).find(|at| last.is_char_boundary(*at)).unwrap();
            return (last[start..].into(), Some(TruncatedBy::Bytes), 1, true);
        }
        let cut = kept.len() == MAX_LINES && lines.len() > MAX_LINES;
        let by = if cut { TruncatedBy::Lines } else { TruncatedBy::Bytes };
        kept.reverse();
        (kept.join("\n"), Some(by), kept.len(), false)
    }

    #[track_caller]
    fn check(pieces: &[&str]) {
        let mut window = TailWindow::new();
        pieces.iter().for_each(|piece| window.push(piece));
        let whole = pieces.concat();
        let seen = window.snapshot();
        let (content, by, lines, partial) = naive(&whole);
        assert_eq!(seen.content, content);
        let facts = (seen.truncated_by, seen.output_lines, seen.last_line_partial, seen.truncated);
        assert_eq!(facts, (by, lines as u64, partial, by.is_some()));
        let body = whole.strip_suffix('\n').unwrap_or(&whole);
        let total = if whole.is_empty() { 0 } else { body.split('\n').count() };
        assert_eq!((seen.total_lines, seen.total_bytes), (total as u64, whole.len() as u64));
        assert_eq!(window.last_line_bytes(), body.rsplit('\n').next().unwrap_or("").len() as u64);
    }

    #[test]
    fn short_texts_stay_as_they_are() {
        for text in ["", "\n", "a", "a\n", "\n\n", "a\n\nb"] {
            check(&[text]);
        }
    }

    #[test]
    fn limits_are_inclusive() {
        check(&[&"x\n".repeat(2000)]);
        check(&[&"x\n".repeat(2000), "y"]);
        check(&[&"x".repeat(MAX_BYTES)]);
        check(&[&"x".repeat(MAX_BYTES), "\n"]);
        check(&[&"x".repeat(MAX_BYTES), "x"]);
        check(&[&"123456789012345678901234\n".repeat(1999), &"x".repeat(MAX_BYTES - 1999 * 25), "\n"]);
        check(&["a\n", &"x".repeat(MAX_BYTES)]);
        check(&["a\n", &"x".repeat(MAX_BYTES), "\n"]);
        check(&["é", &"漢".repeat(MAX_BYTES / 3), "é\n"]);
    }

    proptest! {
        #[test]
        fn any_pieces_give_the_tail_of_the_whole(
            pieces in proptest::collection::vec(
                prop_oneof![
                    "[a-z漢\n]{0,30}",
                    (0usize..30_000, "[a-zé\n]").prop_map(|(count, what)| what.repeat(count)),
                    (0usize..900, "[a-zé]{0,30}\n").prop_map(|(count, what)| what.repeat(count)),
                ],
                0..8,
            )
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            check(&pieces);
        }
    }
}
