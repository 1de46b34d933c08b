//! Columns of text, and text freed of what steers a terminal.

use agentd_protocol::terminal_text::steers;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The distance of tab stops, in columns.
const TAB: usize = 4;

/// Appends a line of the source: tabs become blanks up to the next stop, what steers a terminal is left out.
pub(crate) fn clean(line: &str, out: &mut String) {
    if line.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        out.push_str(line);
        return;
    }
    let mut column = 0;
    for c in line.chars() {
        match c {
            '\t' => {
                let blanks = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            // Separators of lines and paragraphs.
            '\u{2028}' | '\u{2029}' => {
                out.push(' ');
                column += 1;
            }
            // Terminals do not agree whether a soft hyphen takes a column.
            '\u{ad}' | '\n' => {}
            c if steers(c) => {}
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
}

/// The columns of a text, at most.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { clusters(text).map(|(_, width)| width).sum() }
}

/// The characters of a text, each with the marks that belong to it, and their columns.
pub(crate) fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (length, width) = first_cluster(rest)?;
        let (cluster, after) = rest.split_at(length);
        rest = after;
        Some((cluster, width))
    })
}

/// The length in bytes and the columns of the first character with its marks. Old terminals add up the columns of the characters of a
/// sequence of emoji, new ones do not: the larger number counts, so that no row overflows in either.
fn first_cluster(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if bytes.first()?.is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
        return Some((1, 1));
    }
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let (mut end, mut sum) = (first.len_utf8(), first.width().unwrap_or(0));
    let mut joins = false;
    for (at, c) in chars {
        let width = c.width().unwrap_or(0);
        let belongs = width == 0 || is_skin_tone(c) || (joins && !c.is_ascii());
        if !belongs {
            break;
        }
        joins = c == '\u{200d}';
        sum += width;
        end = at + c.len_utf8();
    }
    Some((end, sum.max(text[..end].width())))
}

fn is_skin_tone(c: char) -> bool {
    ('\u{1f3fb}'..='\u{1f3ff}').contains(&c)
}

/// The number of blanks at the beginning.
pub(crate) fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Whether a line has nothing to show.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim_matches(' ').is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned() {
        let cleaned = |text: &str| {
            let mut out = String::new();
            clean(text, &mut out);
            out
        };
        assert_eq!(cleaned("a\tb\u{1b}[2J\r\u{9b}\u{202e}\u{ad}"), "a   b[2J");
        assert_eq!(cleaned("é\u{2028}\u{0}漢"), "é 漢");
    }

    #[test]
    fn columns_count_the_larger_way() {
        for (text, expected) in [
            ("ab", 2),
            ("漢字", 4),
            ("e\u{301}x", 2),
            ("❤\u{fe0f}", 2),
            ("👍\u{1f3fd}", 4),
            ("👩\u{200d}👧", 4),
        ] {
            assert_eq!(columns(text), expected, "{text}");
        }
        assert_eq!(
            clusters("e\u{301}x👩\u{200d}👧").map(|(text, _)| text).collect::<Vec<_>>(),
            ["e\u{301}", "x", "👩\u{200d}👧"]
        );
    }
}
