//! Decodes UTF-8 that arrives in pieces.

use std::borrow::Cow;

/// Decodes bytes that arrive in pieces, cut anywhere. Invalid UTF-8 becomes U+FFFD, as in [`String::from_utf8_lossy`]
/// of the whole.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    /// The beginning of an incomplete character: at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the next piece, up to the last complete character.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        if self.pending.is_empty() {
            let (text, rest) = split_incomplete(bytes);
            self.pending.extend_from_slice(rest);
            return String::from_utf8_lossy(text);
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        let (text, rest) = split_incomplete(&joined);
        self.pending.extend_from_slice(rest);
        Cow::Owned(String::from_utf8_lossy(text).into_owned())
    }

    /// Ends the stream: U+FFFD if a character was cut off, else nothing.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() { "" } else { "\u{fffd}" }
    }
}

/// Splits off the beginning of a character that may still be completed.
fn split_incomplete(bytes: &[u8]) -> (&[u8], &[u8]) {
    // A character has at most three bytes before its last, so the last three bytes suffice.
    let from = bytes.len().saturating_sub(3);
    let lead = (from..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0);
    let cut =
        lead.filter(|at| std::str::from_utf8(&bytes[*at..]).is_err_and(|error| error.error_len().is_none()));
    bytes.split_at(cut.unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_text(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..60),
                "[a-zé漢😀\n]{0,30}".prop_map(String::into_bytes),
                proptest::collection::vec(prop_oneof![Just(0xf0u8), Just(0x9f), Just(0x98), Just(0x80), Just(0xe6), Just(b'a')], 0..40),
            ],
            sizes in proptest::collection::vec(1usize..6, 60),
        ) {
            let mut stream = Utf8Stream::new();
            let mut text = String::new();
            let mut rest = &bytes[..];
            for size in sizes {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                text.push_str(&stream.push(piece));
                rest = after;
            }
            text.push_str(&stream.push(rest));
            text.push_str(stream.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn a_character_is_held_back_until_it_is_whole() {
        let mut stream = Utf8Stream::new();
        let bytes = "漢".as_bytes();
        assert_eq!(stream.push(&bytes[..2]), "");
        assert_eq!(stream.push(&bytes[2..]), "漢");
        assert_eq!(stream.finish(), "");
    }
}
