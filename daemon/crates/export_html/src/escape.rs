//! Escapes text of any origin for the page.
//!
//! One rule serves text between tags and attribute values, so that no wrong choice is possible.

use std::io::{self, Write};

/// Bytes at which a replacement may begin: markup, controls, and the first bytes of characters of which some are
/// replaced.
static LOOKED_AT: [bool; 256] = looked_at();

const fn looked_at() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = byte != b'\n' as usize && byte != b'\t' as usize;
        byte += 1;
    }
    table[0x7f] = true;
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table[b'\'' as usize] = true;
    // U+0080 to U+00BF, U+2000 to U+2FFF.
    table[0xc2] = true;
    table[0xe2] = true;
    table
}

/// Writes `text` so that a browser shows exactly it and interprets nothing.
///
/// Markup characters become references. Control characters become their pictures (`␛`), a carriage return a line feed,
/// and characters that reorder the surrounding text their names (`[U+202E]`).
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let bytes = text.as_bytes();
    // Bytes before `written` are in `out`.
    let (mut written, mut at) = (0, 0);
    while let Some(found) = bytes[at..].iter().position(|byte| LOOKED_AT[usize::from(*byte)]) {
        at += found;
        let Some(character) = text[at..].chars().next() else { break };
        let end = at + character.len_utf8();
        let mut buffer = [0; 4];
        let replacement = match character {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            '\r' if bytes.get(end) == Some(&b'\n') => "",
            '\r' => "\n",
            '\u{7f}' => "\u{2421}",
            '\u{80}'..='\u{9f}' => "\u{fffd}",
            control if control < ' ' => picture(control).encode_utf8(&mut buffer),
            '\u{202a}' => "[U+202A]",
            '\u{202b}' => "[U+202B]",
            '\u{202c}' => "[U+202C]",
            '\u{202d}' => "[U+202D]",
            '\u{202e}' => "[U+202E]",
            '\u{2066}' => "[U+2066]",
            '\u{2067}' => "[U+2067]",
            '\u{2068}' => "[U+2068]",
            '\u{2069}' => "[U+2069]",
            _ => {
                at = end;
                continue;
            }
        };
        out.write_all(&bytes[written..at])?;
        out.write_all(replacement.as_bytes())?;
        at = end;
        written = end;
    }
    out.write_all(&bytes[written..])
}

/// The picture of a control character below U+0020.
fn picture(control: char) -> char {
    char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, text).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(escaped(text), expected, "{text:?}");
    }

    #[test]
    fn markup_is_text() {
        check(
            "</script><!-- ]]> &amp; \"a\" 'b'",
            "&lt;/script&gt;&lt;!-- ]]&gt; &amp;amp; &quot;a&quot; &#39;b&#39;",
        );
        check("plain, äöü 漢 😀", "plain, äöü 漢 😀");
    }

    #[test]
    fn controls_are_shown() {
        check("\0\x07\x1b[1m\x7f\u{85}\u{9b}", "␀␇␛[1m␡\u{fffd}\u{fffd}");
        check("a\tb\nc\r\nd\re\r", "a\tb\nc\nd\ne\n");
    }

    #[test]
    fn what_reorders_text_is_named() {
        check("a\u{202e}b\u{2066}c\u{2069}", "a[U+202E]b[U+2066]c[U+2069]");
        // Needed in right-to-left text and in emoji, and without effect on other text.
        check("\u{200f}\u{200d}\u{2028}°«", "\u{200f}\u{200d}\u{2028}°«");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_left(text: String) {
            let escaped = escaped(&text);
            let acts = ['<', '>', '"', '\'', '\r', '\0', '\u{1b}', '\u{202e}', '\u{9b}'];
            prop_assert!(!escaped.contains(acts));
            for rest in escaped.split('&').skip(1) {
                prop_assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|name| rest.starts_with(name)));
            }
        }

        #[test]
        fn ordinary_text_comes_back(text in "[a-z<>&\"' \n\u{e4}\u{2028}\u{a0}]{0,40}") {
            let back = escaped(&text).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            prop_assert_eq!(back.replace("&#39;", "'").replace("&amp;", "&"), text);
        }
    }
}
