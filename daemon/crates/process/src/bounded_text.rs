//! Keeps the end, or the beginning and the end, of a text of any length.

use agentd_protocol::text_bounds;

/// Bytes kept of each half: 512 KiB.
pub const HALF_BYTES: usize = 512 * 1024;

/// Keeps a text of up to 1 MiB whole; of a longer one, the first and the last 512 KiB.
#[derive(Debug, Clone)]
pub struct HeadTailBuffer {
    head: String,
    /// The text after the head.
    rest: TailBuffer,
    rest_bytes: usize,
}

impl Default for HeadTailBuffer {
    fn default() -> Self {
        Self { head: String::new(), rest: TailBuffer::new(HALF_BYTES), rest_bytes: 0 }
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
            let (head, after) = text.split_at(text_bounds::floor(text, HALF_BYTES - self.head.len()));
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
        let tail = text_bounds::tail(rest, HALF_BYTES);
        let omitted = rest_bytes - tail.len();
        if omitted > 0 {
            head.push_str(&format!("\n\n[... {omitted} bytes omitted ...]\n\n"));
        }
        head.push_str(tail);
        head
    }
}

/// Keeps at least the last `keep` bytes of a text, and at most twice as many, give or take a character.
#[derive(Debug, Clone, Default)]
pub(crate) struct TailBuffer {
    text: String,
    keep: usize,
}

impl TailBuffer {
    pub(crate) fn new(keep: usize) -> Self {
        Self { text: String::new(), keep }
    }

    /// The end that is kept.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends to the text.
    pub(crate) fn push(&mut self, more: &str) {
        if more.len() >= self.keep {
            self.text.clear();
            self.text.push_str(last(more, self.keep));
            return;
        }
        self.text.push_str(more);
        // Dropping at twice the size keeps the cost of moving the rest constant per byte.
        if self.text.len() > 2 * self.keep {
            let cut = self.text.len() - last(&self.text, self.keep).len();
            self.text.drain(..cut);
        }
    }
}

/// The last `count` bytes of `text`, and up to three more to avoid splitting a character.
fn last(text: &str, count: usize) -> &str {
    &text[text_bounds::floor(text, text.len().saturating_sub(count))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> String {
        let mut buffer = HeadTailBuffer::new();
        pieces.iter().for_each(|piece| buffer.push(piece));
        buffer.finish()
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
        let kept = of(&[&text]);
        let (head, tail) = kept.split_once("\n\n[... ").unwrap();
        let (omitted, tail) = tail.split_once(" bytes omitted ...]\n\n").unwrap();
        assert_eq!(head.len() + tail.len() + omitted.parse::<usize>().unwrap(), text.len());
        assert!(head.len() <= HALF_BYTES && tail.len() <= HALF_BYTES && head.len() > HALF_BYTES - 3);
    }
}

#[cfg(test)]
mod tail_tests {
    use proptest::prelude::*;

    use crate::bounded_text::*;

    proptest! {
        #[test]
        fn the_end_is_kept(pieces in proptest::collection::vec("[a-zé漢]{0,12}", 0..40), keep in 1usize..20) {
            let mut tail = TailBuffer::new(keep);
            pieces.iter().for_each(|piece| tail.push(piece));
            let whole = pieces.concat();
            prop_assert!(whole.ends_with(tail.as_str()));
            prop_assert!(tail.as_str().len() >= keep.min(whole.len()));
            prop_assert!(tail.as_str().len() <= 2 * keep + 3);
        }
    }
}
