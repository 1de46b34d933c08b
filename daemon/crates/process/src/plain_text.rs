//! Reduces terminal output to plain text.

use std::borrow::Cow;

/// Removes everything but text from output that arrives in pieces, cut between any characters: ANSI escape sequences,
/// control characters other than tab and LF (so also CR), and the interlinear annotation characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputCleaner {
    state: EscapeState,
}

/// The position in an escape sequence, after ECMA-48.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character, such as the `(` that selects a character set.
    Intermediate,
    /// In a control sequence (ESC `[`), which ends with a character in `@` to `~`.
    Control,
    /// In a control string (a window title, a link, …), which ends with BEL or ESC `\`.
    Str,
}

impl OutputCleaner {
    /// At the start of some text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that is in the next piece.
    pub fn clean(&mut self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len());
        let mut rest = piece;
        loop {
            if self.state == EscapeState::Text {
                let (plain, after) = rest.split_at(plain_length(rest.as_bytes()));
                text.push_str(plain);
                rest = after;
            }
            let mut chars = rest.chars();
            let Some(char) = chars.next() else { return text };
            if self.is_text(char) {
                text.push(char);
            }
            rest = chars.as_str();
        }
    }

    fn is_text(&mut self, char: char) -> bool {
        self.state = match (self.state, char) {
            // A sequence without an end must not swallow all that follows. Real ones have no line breaks.
            (_, '\n') => return self.back_to_text(char),
            // These start a new sequence anywhere; an unfinished one is dropped.
            (_, '\u{1b}') => EscapeState::Escape,
            (_, '\u{9b}') => EscapeState::Control,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => EscapeState::Str,
            (EscapeState::Escape, '[') => EscapeState::Control,
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::Str,
            (EscapeState::Escape | EscapeState::Intermediate, ' '..='/') => EscapeState::Intermediate,
            (EscapeState::Escape | EscapeState::Intermediate, '0'..='~') => EscapeState::Text,
            (EscapeState::Control, ' '..='?') => EscapeState::Control,
            (EscapeState::Control, '@'..='~') => EscapeState::Text,
            (EscapeState::Str, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') => EscapeState::Text,
            (EscapeState::Str, _) => EscapeState::Str,
            // A control character inside a sequence takes effect, and the sequence continues.
            (state, '\0'..='\u{1f}') if state != EscapeState::Text => return keeps(char),
            (_, _) => return self.back_to_text(char),
        };
        false
    }

    fn back_to_text(&mut self, char: char) -> bool {
        self.state = EscapeState::Text;
        keeps(char)
    }
}

/// The length of the ASCII text without control characters, other than tab and LF, at the beginning.
fn plain_length(bytes: &[u8]) -> usize {
    /// Bytes that are looked at in a few steps.
    const BLOCK: usize = 64;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    let blocks = bytes.chunks_exact(BLOCK);
    // Without an early end, so that the compiler looks at many bytes at once.
    let plain = blocks.take_while(|block| block.iter().fold(true, |all, byte| all & is_plain(byte)));
    let from = plain.count() * BLOCK;
    from + bytes[from..].iter().take_while(|byte| is_plain(byte)).count()
}

fn keeps(char: char) -> bool {
    match char {
        '\t' | '\n' => true,
        '\u{fff9}'..='\u{fffb}' => false,
        _ => !char.is_control(),
    }
}

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
            return decode(text);
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        let (text, rest) = split_incomplete(&joined);
        self.pending.extend_from_slice(rest);
        Cow::Owned(decode(text).into_owned())
    }

    /// Ends the stream: U+FFFD if a character was cut off, else nothing.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() { "" } else { "\u{fffd}" }
    }
}

/// As [`String::from_utf8_lossy`], which looks at every byte by itself: most output is valid, and that is found out in wide steps.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
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

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(OutputCleaner::new().clean(input), expected);
        for (at, _) in input.char_indices() {
            let mut cleaner = OutputCleaner::new();
            let halves = cleaner.clean(&input[..at]) + &cleaner.clean(&input[at..]);
            assert_eq!(halves, expected, "cut at byte {at}");
        }
    }

    #[test]
    fn escape_sequences_go() {
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}[38;5;196mx\u{1b}[?25l\u{1b}[2Ky\u{1b}[1;1H", "xy");
        check("\u{9b}1mx", "x");
        check("\u{1b}(Bx\u{1b}7y\u{1b}=z", "xyz");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;http://a/b\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}P1$r0m\u{1b}\\x", "x");
    }

    #[test]
    fn garbage_goes_and_text_stays() {
        check("a\r\nb\tc\0\u{8}\u{7f}\u{85}d", "a\nb\tcd");
        check("50%\r100%\r\n", "50%100%\n");
        check("漢\u{fff9}é\u{fffb}😀\u{fffd}", "漢é😀\u{fffd}");
    }

    #[test]
    fn broken_sequences_do_not_swallow_what_follows() {
        check("\u{1b}]never ended\nnext", "\nnext");
        check("\u{1b}[31\nx", "\nx");
        check("\u{1b}[3\u{8}1mx", "x");
        check("\u{1b}漢", "漢");
        check("\u{1b}[漢", "漢");
        check("\u{1b}", "");
    }

    proptest! {
        #[test]
        fn nothing_but_text_comes_out(input in "[\\x00-\\x9f漢\\[\\]\\\\;m]{0,60}") {
            let text = OutputCleaner::new().clean(&input);
            prop_assert!(text.chars().all(keeps));
            prop_assert!(OutputCleaner::new().clean(&text) == text, "clean text stays as it is");
        }
    }
}

#[cfg(test)]
mod decode_tests {
    use proptest::prelude::*;

    use crate::plain_text::*;

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
