//! Turns matched edits into changes of the text.

use std::ops::Range;

use super::matching::{Edit, EditMatch, EditMatches};

/// A range of the text and its replacement. Changes are in the order of the text and do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The bytes that are replaced.
    pub(crate) range: Range<usize>,
    /// The replacement.
    pub(crate) text: String,
}

/// The changes of `text` that `edits` make at their `matches`.
///
/// When the matches are in the plain form of the text, a change takes whole lines: their plain form with the edits
/// made. All other lines keep their bytes.
pub(super) fn changes(text: &str, edits: &[Edit], matches: &EditMatches<'_>) -> Vec<Change> {
    match &matches.plain {
        None => matches
            .places
            .iter()
            .map(|place| Change { range: place.start..place.end, text: edits[place.edit].new.clone() })
            .collect(),
        Some(plain) => widened(text, plain, edits, &matches.places),
    }
}

/// `text` with `changes` made.
pub(crate) fn apply(text: &str, changes: &[Change]) -> String {
    let mut result =
        String::with_capacity(text.len() + changes.iter().map(|change| change.text.len()).sum::<usize>());
    let mut at = 0;
    for change in changes {
        result.push_str(&text[at..change.range.start]);
        result.push_str(&change.text);
        at = change.range.end;
    }
    result.push_str(&text[at..]);
    result
}

fn widened(text: &str, plain: &str, edits: &[Edit], places: &[EditMatch]) -> Vec<Change> {
    let mut lines = SameLines { text, plain, text_at: 0, plain_at: 0 };
    let mut changes = Vec::new();
    let mut places = places.iter().peekable();
    while let Some(first) = places.next() {
        let start = line_start(plain, first.start);
        let mut changed = String::new();
        changed.push_str(&plain[start..first.start]);
        changed.push_str(&edits[first.edit].new);
        let mut at = first.end;
        let mut end = whole_line_end(plain, at);
        // Edits of the same line become one change, which may include the line feed at its end.
        while let Some(next) =
            places.next_if(|next| next.start < end || (next.start == end && !starts_line(plain, at)))
        {
            changed.push_str(&plain[at..next.start]);
            changed.push_str(&edits[next.edit].new);
            at = next.end;
            // Keep the end until an edit passes it: searching it for each edit would scan a long line again and again.
            if at > end || starts_line(plain, at) {
                end = whole_line_end(plain, at);
            }
        }
        changed.push_str(&plain[at..end]);
        let range = lines.locate(start)..lines.locate(end);
        changes.push(Change { range, text: changed });
    }
    changes
}

fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |feed| feed + 1)
}

fn starts_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// The end of the line that `at` is in, or `at` at the start of a line, which is then unchanged.
fn whole_line_end(text: &str, at: usize) -> usize {
    if starts_line(text, at) {
        return at;
    }
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |feed| at + feed)
}

/// Walks a text and its plain form side by side: both have the same lines.
struct SameLines<'a> {
    text: &'a str,
    plain: &'a str,
    /// The start of the same line in both.
    text_at: usize,
    plain_at: usize,
}

impl SameLines<'_> {
    /// The position in the text of `plain_at`, the start or the end of a line of the plain form. Forwards only.
    fn locate(&mut self, plain_at: usize) -> usize {
        let feeds = memchr::memchr_iter(b'\n', &self.plain.as_bytes()[self.plain_at..plain_at]).count();
        if feeds > 0 {
            let text = &self.text.as_bytes()[self.text_at..];
            let feed = memchr::memchr_iter(b'\n', text).nth(feeds - 1);
            self.text_at += feed.map_or(text.len(), |feed| feed + 1);
            self.plain_at = line_start(self.plain, plain_at);
        }
        if self.plain_at == plain_at {
            return self.text_at;
        }
        let text = &self.text.as_bytes()[self.text_at..];
        self.text_at + memchr::memchr(b'\n', text).unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::matching::find, *};

    fn edited(text: &str, edits: &[(&str, &str)]) -> String {
        let edits: Vec<Edit> =
            edits.iter().map(|(old, new)| Edit { old: (*old).to_owned(), new: (*new).to_owned() }).collect();
        let matches = find(text, &edits, || false).unwrap();
        apply(text, &changes(text, &edits, &matches))
    }

    #[test]
    fn exact_edits_change_nothing_else() {
        assert_eq!(edited("a \u{201c}b\u{201d}  \nc\n", &[("c", "d")]), "a \u{201c}b\u{201d}  \nd\n");
        assert_eq!(edited("abc", &[("c", "3"), ("a", "1")]), "1b3");
        assert_eq!(edited("abc", &[("abc", "")]), "");
    }

    #[test]
    fn edits_of_plain_text_keep_the_other_lines() {
        let text = "\u{201c}top\u{201d}  \nsay \u{201c}hi\u{201d} now  \n\u{201c}end\u{201d}  \n";
        assert_eq!(
            edited(text, &[("\"hi\"", "\"ho\"")]),
            "\u{201c}top\u{201d}  \nsay \"ho\" now\n\u{201c}end\u{201d}  \n"
        );
        // A match that includes the line feed leaves the next line unchanged.
        assert_eq!(
            edited(text, &[("say \"hi\" now\n", "gone\n")]),
            "\u{201c}top\u{201d}  \ngone\n\u{201c}end\u{201d}  \n"
        );
        // Two edits of one line, and one of the line after it.
        assert_eq!(
            edited(text, &[("\"hi\"", "1"), ("say", "2"), ("\"end\"", "3")]),
            "\u{201c}top\u{201d}  \n2 1 now\n3\n"
        );
        assert_eq!(edited("x\u{2019}\n\ny", &[("x'\n", ""), ("\ny", "z")]), "z");
        assert_eq!(edited("a \nb \nc\u{2019}", &[("a\nb\nc'", "x")]), "x");
    }

    proptest! {
        /// Lines that no edit touches keep their bytes.
        #[test]
        fn untouched_lines_keep_their_bytes(
            lines in prop::collection::vec("[a\u{2019}é\u{fb01}]{0,4} {0,2}", 1..8),
            chosen in any::<prop::sample::Index>(),
            ends_with_feed: bool,
        ) {
            let chosen = chosen.index(lines.len());
            let mut lines = lines;
            lines[chosen] = format!("<{}\u{2019}>  ", lines[chosen]);
            let text = lines.join("\n") + if ends_with_feed { "\n" } else { "" };
            let plain = super::super::fuzzy::plain(&lines[chosen]).into_owned();
            let result = edited(&text, &[(&plain, "new\nlines")]);
            let mut expected = lines;
            expected[chosen] = "new\nlines".to_owned();
            prop_assert_eq!(result, expected.join("\n") + if ends_with_feed { "\n" } else { "" });
        }
    }
}
