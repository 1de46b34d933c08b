//! Removes terminal control sequences from the output of commands.

use std::borrow::Cow;

/// Removes escape sequences: colours, cursor movements, titles, links. An unfinished one is removed as far as it goes.
///
/// Other control characters stay; the page shows them as pictures.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\u{9b}']) {
        let (before, sequence) = rest.split_at(at);
        out.push_str(before);
        rest = behind(sequence);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The text after the sequence that `text` begins with.
fn behind(text: &str) -> &str {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return text };
    if first == '\u{9b}' {
        return behind_control(characters.as_str());
    }
    let after_escape = characters.as_str();
    match characters.next() {
        Some('[') => behind_control(characters.as_str()),
        // Operating system commands and other strings.
        Some(']' | 'P' | 'X' | '^' | '_') => behind_string(characters.as_str()),
        // Intermediate bytes, then a final byte: character sets and similar.
        Some(' '..='/') => {
            let rest = after_escape.trim_start_matches(|character| (' '..='/').contains(&character));
            without_first(rest, |end| ('0'..='~').contains(&end))
        }
        Some('0'..='~') => characters.as_str(),
        _ => after_escape,
    }
}

/// The text after parameters, intermediate bytes and the final byte.
fn behind_control(text: &str) -> &str {
    let rest = text.trim_start_matches(|character| ('0'..='?').contains(&character));
    let rest = rest.trim_start_matches(|character| (' '..='/').contains(&character));
    without_first(rest, |end| ('@'..='~').contains(&end))
}

/// The text after a string that ends on the same line; without an end, only its introducer is removed.
fn behind_string(text: &str) -> &str {
    let Some(end) = text.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']) else { return text };
    let rest = &text[end..];
    if let Some(rest) = rest.strip_prefix("\u{1b}\\") {
        return rest;
    }
    rest.strip_prefix(['\u{7}', '\u{9c}']).unwrap_or(text)
}

fn without_first(text: &str, is_end: impl Fn(char) -> bool) -> &str {
    text.strip_prefix(is_end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text), expected, "{text:?}");
    }

    #[test]
    fn sequences_go_and_text_stays() {
        check("no sequence", "no sequence");
        check("\x1b[1;31mred\x1b[0m and \x1b[38:5:1mmore\u{9b}K.", "red and more.");
        check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb");
        check("\x1b(Ba\x1b=b\x1b7c\x1bMd", "abcd");
        check("\x1bPdevice\x1b\\x", "x");
    }

    #[test]
    fn what_does_not_end_takes_nothing_with_it() {
        check("a\x1b", "a");
        check("a\x1b[12", "a");
        check("a\x1b[12\nb", "a\nb");
        check("a\x1b]0;title\nb", "a0;title\nb");
        check("\x1b\x1b[1mx", "x");
        check("\x1bäx", "äx");
    }

    proptest! {
        #[test]
        fn no_escape_is_left(text in "[\\x1b\u{9b}\u{9c}\\[\\]P0-9;m\\\\ \\x07\na\u{e4}]{0,60}") {
            let begins = ['\u{1b}', '\u{9b}'];
            prop_assert!(!plain(&text).contains(begins));
        }

        #[test]
        fn lines_stay(text in "[\\x1b\\[\\]0m\na]{0,60}") {
            prop_assert_eq!(plain(&text).matches('\n').count(), text.matches('\n').count());
        }
    }
}
