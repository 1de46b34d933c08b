//! Texts of others made safe for a terminal: file names, names of models, answers of servers.
//!
//! Everything that either program writes to its standard error passes [`harmless`] or [`Shown`], whether that is a terminal or a
//! file: logs are looked at with `cat`.

use std::borrow::Cow;

/// The longest colour sequence that [`Shown`] takes for one, in bytes.
const MAX_COLOUR: usize = 20;

/// Whether a character could steer a terminal, or make it show a text in another order than it is read in; line feeds and tabs do
/// not count.
#[must_use]
pub fn steers(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// The text with each character that could steer a terminal replaced by a blank. Line feeds and tabs stay.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(steers) { Cow::Owned(text.replace(steers, " ")) } else { Cow::Borrowed(text) }
}

/// Whether a character is not seen, or is seen as a blank: what hides in a text that a user is to agree to.
fn hides(c: char) -> bool {
    let blank = c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t');
    let invisible = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    blank || invisible
}

/// The text with each character that could steer a terminal, or that is not seen, written as `\u{202e}`. Line feeds and tabs stay. For texts
/// that a user is to agree to: a blank in its place would look like another text.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| steers(c) || hides(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) || hides(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Cleans bytes that come in pieces cut anywhere, as [`harmless`] does, but lets sequences pass that only choose a colour: those are
/// the programs' own. What is no UTF-8 becomes U+FFFD.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The end of what came, where a character or a colour may have begun.
    held: Vec<u8>,
}

impl Shown {
    /// The next bytes, as they may be shown.
    #[must_use]
    pub fn clean(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        self.held = all.split_off(whole(&all));
        clean(&all)
    }

    /// The rest that was held back at the end.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        clean(&std::mem::take(&mut self.held))
    }
}

/// Up to where the bytes mean the same whatever follows.
fn whole(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(MAX_COLOUR);
    if let Some(at) = bytes[tail..].iter().rposition(|byte| *byte == 0x1b)
        && begins_colour(&bytes[tail + at..])
    {
        return tail + at;
    }
    for back in 1..=bytes.len().min(3) {
        let length = match bytes[bytes.len() - back] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

/// Whether the bytes, from ESC on, may become a colour sequence with those that follow.
fn begins_colour(bytes: &[u8]) -> bool {
    let numbers = match bytes {
        [_] => return true,
        [_, b'[', numbers @ ..] => numbers,
        _ => return false,
    };
    bytes.len() < MAX_COLOUR && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
}

/// The length of the colour sequence that the text begins with.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let count = numbers.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    (numbers.as_bytes().get(count) == Some(&b'm') && count + 3 <= MAX_COLOUR).then_some(count + 3)
}

fn clean(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((at, found)) = rest.char_indices().find(|(_, c)| steers(*c)) {
        shown.push_str(&rest[..at]);
        if let Some(length) = colour(&rest[at..]) {
            shown.push_str(&rest[at..at + length]);
            rest = &rest[at + length..];
        } else {
            shown.push(' ');
            rest = &rest[at + found.len_utf8()..];
        }
    }
    shown.push_str(rest);
    shown.into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole_text(text: &[u8]) -> Vec<u8> {
        let mut shown = Shown::default();
        [shown.clean(text), shown.finish()].concat()
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(harmless("a\x1b[2J\u{9b}b\tc\n"), "a [2J b\tc\n");
        assert_eq!(harmless("safe\u{202e}exe.\u{2066}txt\u{200f}\u{61c}"), "safe exe. txt  ");
        assert!(matches!(harmless("plain\n \u{5d0}"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_hides_in_what_a_user_agrees_to() {
        assert_eq!(visible("a\x1b[2Jb\r\n\tc"), "a\\u{1b}[2Jb\\u{d}\n\tc");
        assert_eq!(
            visible("safe\u{202e}exe\u{200b}\u{a0}\u{e0041}"),
            "safe\\u{202e}exe\\u{200b}\\u{a0}\\u{e0041}"
        );
        assert!(matches!(visible("plain\n \u{5d0} 漢 é"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_colours_pass() {
        let check = |text: &str, shown: &str| assert_eq!(whole_text(text.as_bytes()), shown.as_bytes());
        check("\x1b[31mred\x1b[0m \x1b[m", "\x1b[31mred\x1b[0m \x1b[m");
        check("\x1b]52;c;eA==\x07\x1b[2J\x1b[6n", " ]52;c;eA==  [2J [6n");
        check("\x1b[31", " [31");
        check(&format!("\x1b[{}m", "1".repeat(MAX_COLOUR)), &format!(" [{}m", "1".repeat(MAX_COLOUR)));
        assert_eq!(whole_text(b"a\x9b2Jb"), "a\u{fffd}2Jb".as_bytes());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in "[\\x00-\\x9f\\[;m0-9\u{202e}漢😀\u{1b}]{0,60}",
            cuts in proptest::collection::vec(0usize..200, 0..4),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut shown = Shown::default();
            let mut pieces = Vec::new();
            for pair in cuts.windows(2) {
                pieces.extend(shown.clean(&bytes[pair[0]..pair[1]]));
            }
            pieces.extend(shown.finish());
            prop_assert_eq!(&pieces, &whole_text(bytes));
            let rest = String::from_utf8(pieces).unwrap();
            for (at, _) in rest.char_indices().filter(|(_, c)| steers(*c)) {
                prop_assert!(colour(&rest[at..]).is_some(), "{:?}", rest);
            }
        }
    }
}
