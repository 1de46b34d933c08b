//! Keeps the end of a text of any length.

/// Keeps at least the last `keep` bytes of a text, and at most twice as many, give or take a character.
#[derive(Debug, Clone, Default)]
pub(crate) struct Suffix {
    text: String,
    keep: usize,
}

impl Suffix {
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
    &text[floor_boundary(text, text.len().saturating_sub(count))..]
}

/// The last character boundary at or before `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary at or after `at`.
pub(crate) fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_is_kept(pieces in proptest::collection::vec("[a-zé漢]{0,12}", 0..40), keep in 1usize..20) {
            let mut suffix = Suffix::new(keep);
            pieces.iter().for_each(|piece| suffix.push(piece));
            let whole = pieces.concat();
            prop_assert!(whole.ends_with(suffix.as_str()));
            prop_assert!(suffix.as_str().len() >= keep.min(whole.len()));
            prop_assert!(suffix.as_str().len() <= 2 * keep + 3);
        }
    }
}
