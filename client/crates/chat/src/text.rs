//! Foreign text made fit for rows of a screen.

use agentd_protocol::terminal_text::steers;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The text with blanks for tabs and without what steers a terminal. Line feeds stay.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => clean.push_str("    "),
            c if steers(c) => {}
            c => clean.push(c),
        }
    }
    clean
}

/// The text in rows of at most `width` columns, broken at words where that is possible.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut rows = Vec::new();
    for line in clean(text).split('\n') {
        wrap_line(line, width, &mut rows);
    }
    rows
}

fn wrap_line(line: &str, width: usize, rows: &mut Vec<String>) {
    let mut row = String::new();
    let mut used = 0;
    let mut rest = line;
    while !rest.is_empty() {
        // White space, and the word behind it.
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
        let (blanks, letters) = (&rest[..word], &rest[word..end]);
        rest = &rest[end..];
        if used + blanks.width() + letters.width() <= width {
            row.push_str(blanks);
            row.push_str(letters);
            used += blanks.width() + letters.width();
            continue;
        }
        if used > 0 {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        for grapheme in letters.graphemes(true) {
            let columns = grapheme.width();
            if used + columns > width && used > 0 {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(grapheme);
            used += columns;
        }
    }
    rows.push(row.trim_end().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_at_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one  two", 4), ["one", "two"]);
        assert_eq!(wrap("a\n\n  b", 9), ["a", "", "  b"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn nothing_steers() {
        assert_eq!(wrap("a\x1b[2J\tb\u{202e}", 20), ["a[2J    b"]);
    }

    proptest::proptest! {
        #[test]
        fn every_row_fits(text in "[a-c \n漢\u{1b}é]{0,80}", width in 2usize..20) {
            for row in wrap(&text, width) {
                proptest::prop_assert!(row.width() <= width, "{row:?}");
            }
        }
    }
}
