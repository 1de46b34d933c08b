//! Cuts long text to what a model can take: whole lines from the start, or from the end.

use agentd_protocol::{
    text_bounds,
    tool::{TruncatedBy, Truncation},
};

use crate::limits::{GREP_LINE_UNITS, MAX_BYTES, MAX_LINES};

/// How much text is kept; whichever limit is met first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// The most lines.
    pub lines: usize,
    /// The most bytes of UTF-8.
    pub bytes: usize,
}

impl Default for TextLimits {
    /// [`MAX_LINES`] and [`MAX_BYTES`].
    fn default() -> Self {
        Self { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

/// Counts lines: what line feeds separate, where one at the very end adds none. The empty text has none.
#[must_use]
pub fn count_lines(text: &str) -> usize {
    let feeds = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    feeds + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Prints a size for humans and models: `512B`, `50.0KB`, `1.5MB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    // Sizes above 2^53 bytes lose digits that one decimal does not show.
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.1}KB", bytes as f64 / KIB),
        _ => format!("{:.1}MB", bytes as f64 / (KIB * KIB)),
    }
}

/// Keeps whole lines from the start.
///
/// Text within the limits comes back as it is, with a line feed at its end; cut text loses that. When the first line
/// alone is too long, nothing is kept and `first_line_exceeds_limit` says so.
#[must_use]
pub fn truncate_head(text: &str, limits: TextLimits) -> Truncation {
    let total = Total::of(text);
    if total.fits(limits) {
        return total.whole(text, limits);
    }
    let mut end = 0;
    let mut lines = 0;
    let mut cut_by = TruncatedBy::Lines;
    // A last line feed ends the last line and starts none.
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if lines == limits.lines {
            break;
        }
        let next = if lines == 0 { line.len() } else { end + 1 + line.len() };
        if next > limits.bytes {
            cut_by = TruncatedBy::Bytes;
            break;
        }
        end = next;
        lines += 1;
    }
    if lines == total.lines {
        // Only the last line feed had no room.
        cut_by = TruncatedBy::Bytes;
    }
    Truncation {
        first_line_exceeds_limit: lines == 0 && cut_by == TruncatedBy::Bytes,
        ..total.cut(&text[..end], lines, cut_by, limits)
    }
}

/// Keeps whole lines from the end.
///
/// As [`truncate_head`], but when the last line alone is too long, its last bytes are kept, from the start of a
/// character on, and `last_line_partial` says so.
#[must_use]
pub fn truncate_tail(text: &str, limits: TextLimits) -> Truncation {
    let total = Total::of(text);
    if total.fits(limits) {
        return total.whole(text, limits);
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut start = text.len();
    let mut lines = 0;
    let mut cut_by = TruncatedBy::Lines;
    let mut last_line_partial = false;
    for line in text.rsplit('\n') {
        if lines == limits.lines {
            break;
        }
        let next = if lines == 0 { start - line.len() } else { start - 1 - line.len() };
        if text.len() - next > limits.bytes {
            cut_by = TruncatedBy::Bytes;
            if lines == 0 {
                start = text_bounds::ceil(text, text.len() - limits.bytes);
                lines = 1;
                last_line_partial = true;
            }
            break;
        }
        start = next;
        lines += 1;
    }
    if lines == total.lines && !last_line_partial {
        cut_by = TruncatedBy::Bytes;
    }
    Truncation { last_line_partial, ..total.cut(&text[start..], lines, cut_by, limits) }
}

/// The size of a whole text.
struct Total {
    lines: usize,
    bytes: usize,
}

impl Total {
    fn of(text: &str) -> Self {
        Self { lines: count_lines(text), bytes: text.len() }
    }

    fn fits(&self, limits: TextLimits) -> bool {
        self.lines <= limits.lines && self.bytes <= limits.bytes
    }

    fn whole(&self, text: &str, limits: TextLimits) -> Truncation {
        Truncation {
            truncated: false,
            truncated_by: None,
            ..self.cut(text, self.lines, TruncatedBy::Lines, limits)
        }
    }

    fn cut(&self, content: &str, lines: usize, by: TruncatedBy, limits: TextLimits) -> Truncation {
        Truncation {
            content: content.to_owned(),
            truncated: true,
            truncated_by: Some(by),
            total_lines: self.lines as u64,
            total_bytes: self.bytes as u64,
            output_lines: lines as u64,
            output_bytes: content.len() as u64,
            last_line_partial: false,
            first_line_exceeds_limit: false,
            max_lines: limits.lines as u64,
            max_bytes: limits.bytes as u64,
        }
    }
}

/// The beginning of a line that is longer than a search shows, and whether it is.
pub(crate) fn cut_line(line: &str) -> (&str, bool) {
    // A character has at most as many units as bytes.
    if line.len() <= GREP_LINE_UNITS {
        return (line, false);
    }
    let mut units = 0;
    for (at, character) in line.char_indices() {
        units += character.len_utf16();
        if units > GREP_LINE_UNITS {
            return (&line[..at], true);
        }
    }
    (line, false)
}

#[cfg(test)]
mod tests;
