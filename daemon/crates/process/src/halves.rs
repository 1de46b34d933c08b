//! Keeps the beginning and the end of a text of any length.

use crate::suffix::{Suffix, ceil_boundary, floor_boundary};

/// Bytes kept of each half: 512 KiB.
pub const HALF_BYTES: usize = 512 * 1024;

/// Keeps a text of up to 1 MiB whole; of a longer one, the first and the last 512 KiB.
#[derive(Debug, Clone)]
pub struct HeadTailBuffer {
    head: String,
    /// The text after the head.
    rest: Suffix,
    rest_bytes: usize,
}

impl Default for HeadTailBuffer {
    fn default() -> Self {
        Self { head: String::new(), rest: Suffix::new(HALF_BYTES), rest_bytes: 0 }
    }
}

impl HeadTailBuffer {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to the text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        if self.rest_bytes == 0 {
            let (head, after) =
                text.split_at(floor_boundary(text, (HALF_BYTES - self.head.len()).min(text.len())));
            self.head.push_str(head);
            rest = after;
        }
        self.rest_bytes += rest.len();
        self.rest.push(rest);
    }

    /// Whether the middle of the text is left out.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.rest_bytes > HALF_BYTES
    }

    /// The text, with `[... N bytes omitted ...]` between empty lines in place of its middle if that was left out.
    #[must_use]
    pub fn finish(self) -> String {
        let Self { mut head, rest, rest_bytes } = self;
        let rest = rest.as_str();
        let tail = &rest[ceil_boundary(rest, rest.len().saturating_sub(HALF_BYTES))..];
        let omitted = rest_bytes - tail.len();
        if omitted > 0 {
            head.push_str(&format!("\n\n[... {omitted} bytes omitted ...]\n\n"));
        }
        head.push_str(tail);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> String {
        let mut halves = HeadTailBuffer::new();
        pieces.iter().for_each(|piece| halves.push(piece));
        halves.finish()
    }

    #[test]
    fn a_mebibyte_stays_whole() {
        let (a, b) = ("a".repeat(HALF_BYTES - 1), "b".repeat(HALF_BYTES + 1));
        assert_eq!(of(&[&a, &b]), a + &b);
        assert_eq!(of(&["x", "", "y"]), "xy");
    }

    #[test]
    fn the_middle_of_more_is_left_out() {
        let text = format!("{}{}{}", "a".repeat(HALF_BYTES), "m".repeat(17), "z".repeat(HALF_BYTES));
        let expected =
            format!("{}\n\n[... 17 bytes omitted ...]\n\n{}", "a".repeat(HALF_BYTES), "z".repeat(HALF_BYTES));
        assert!(of(&[&text]) == expected);
        let pieces: Vec<&str> =
            text.as_bytes().chunks(1000).map(|piece| str::from_utf8(piece).unwrap()).collect();
        assert!(of(&pieces) == expected, "pieces give the same");
    }

    #[test]
    fn no_character_is_cut() {
        let text = "漢".repeat(600_000);
        let halves = of(&[&text]);
        let (head, tail) = halves.split_once("\n\n[... ").unwrap();
        let (omitted, tail) = tail.split_once(" bytes omitted ...]\n\n").unwrap();
        assert_eq!(head.len() + tail.len() + omitted.parse::<usize>().unwrap(), text.len());
        assert!(head.len() <= HALF_BYTES && tail.len() <= HALF_BYTES && head.len() > HALF_BYTES - 3);
    }
}
