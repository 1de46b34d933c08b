//! Removes differences that models cannot see: compatibility characters, curly quotes, long dashes, unusual spaces, and
//! spaces at the ends of lines.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The plain form of `text`. It has the same lines as `text`.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !has_space_before_feed(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            plain.push('\n');
        }
        push_line(&mut plain, line);
    }
    Cow::Owned(plain)
}

fn push_line(plain: &mut String, line: &str) {
    if line.is_ascii() {
        plain.push_str(line.trim_end_matches(is_blank));
        return;
    }
    let start = plain.len();
    plain.extend(line.nfkc());
    let end = plain.trim_end_matches(is_blank).len();
    plain.truncate(end.max(start));
    if plain[start..].contains(|c| plain_char(c) != c) {
        let mapped: String = plain[start..].chars().map(plain_char).collect();
        plain.replace_range(start.., &mapped);
    }
}

fn plain_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// White space as trimmed in JavaScript.
fn is_blank(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

fn has_space_before_feed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let blank_before = |end: usize| end > 0 && bytes[end - 1] != b'\n' && is_blank(bytes[end - 1].into());
    blank_before(bytes.len()) || memchr::memchr_iter(b'\n', bytes).any(blank_before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invisible_differences_are_taken_out() {
        for (text, expected) in [
            ("plain\n  text\n", "plain\n  text\n"),
            ("a \t\nb  ", "a\nb"),
            ("\u{2018}a\u{2019} \u{201c}b\u{201d}", "'a' \"b\""),
            ("a\u{2013}b\u{2014}c\u{2212}d\u{2010}e", "a-b-c-d-e"),
            ("a\u{a0}b\u{2003}c\u{3000}", "a b c"),
            ("e\u{301}\u{fb01}\u{ff21}", "\u{e9}fiA"),
            ("é \n \n", "é\n\n"),
            ("", ""),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_stay_lines_and_plain_stays_plain(text in "[a \té\u{a0}\u{2019}\u{fb01}\u{301}\u{2013}\n]{0,30}") {
            let once = plain(&text);
            prop_assert_eq!(once.matches('\n').count(), text.matches('\n').count());
            prop_assert_eq!(plain(&once), once.clone());
            // The long way gives the same as the shortcut for texts that need no change.
            let mut long = String::new();
            for (index, line) in text.split('\n').enumerate() {
                if index > 0 { long.push('\n'); }
                push_line(&mut long, line);
            }
            prop_assert_eq!(once, long);
        }
    }
}
