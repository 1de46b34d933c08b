//! Styled text broken into rows: at words, or anywhere in code.

use crate::{
    style::{HARD_BREAK, Line, Span, Style, push_text},
    text::{clusters, columns},
};

/// Breaks text into rows at blanks, and between wide characters; words that are wider than a row are cut. Gives at least one row.
pub(crate) fn wrap(spans: &[Span], width: usize) -> Vec<Line> {
    let mut rows = Rows { width: width.max(1), ..Rows::default() };
    for span in spans {
        if span.text == HARD_BREAK {
            rows.end_word();
            rows.end_row();
        } else {
            rows.add(&span.text, &span.style);
        }
    }
    rows.finish()
}

/// Breaks text into full rows, and keeps every blank. Gives at least one row.
pub(crate) fn fill(spans: &[Span], width: usize) -> Vec<Line> {
    let mut rows = Rows { width: width.max(1), ..Rows::default() };
    for span in spans {
        if span.text.is_ascii() && rows.used + span.text.len() <= rows.width {
            rows.put(&span.text, span.text.len(), &span.style);
        } else {
            rows.put_cut(&span.text, &span.style);
        }
    }
    rows.finish()
}

/// Rows that are being filled.
#[derive(Default)]
struct Rows<'a> {
    width: usize,
    rows: Vec<Line>,
    row: Vec<Span>,
    /// The columns of the row that are taken.
    used: usize,
    /// The blanks before the next word.
    blanks: Option<(&'a str, &'a Style)>,
    /// The parts of the word that has begun.
    word: Vec<(&'a str, &'a Style)>,
    word_width: usize,
}

impl<'a> Rows<'a> {
    fn add(&mut self, text: &'a str, style: &'a Style) {
        let mut rest = text;
        while !rest.is_empty() {
            let blanks = rest.len() - rest.trim_start_matches(' ').len();
            if blanks > 0 {
                self.end_word();
                self.blanks = Some((&rest[..blanks], style));
                rest = &rest[blanks..];
                continue;
            }
            let end = rest.find(' ').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_ascii() {
                self.add_part(word, word.len(), style);
            } else {
                self.add_wide(word, style);
            }
            rest = after;
        }
    }

    /// Adds text without blanks. A row may end before and after each wide character, but not before punctuation.
    fn add_wide(&mut self, text: &'a str, style: &'a Style) {
        let mut after_wide = false;
        for (cluster, width) in clusters(text) {
            let is_wide = width > 1;
            if (is_wide || after_wide) && !closes(cluster) {
                self.end_word();
            }
            self.add_part(cluster, width, style);
            after_wide = is_wide;
        }
    }

    fn add_part(&mut self, text: &'a str, width: usize, style: &'a Style) {
        self.word.push((text, style));
        self.word_width += width;
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let blanks = self.blanks.take().filter(|_| !self.row.is_empty());
        let gap = blanks.map_or(0, |(blanks, _)| blanks.len());
        let word = std::mem::take(&mut self.word);
        let word_width = std::mem::take(&mut self.word_width);
        if self.used + gap + word_width <= self.width {
            if let Some((blanks, style)) = blanks {
                self.put(blanks, gap, style);
            }
        } else if !self.row.is_empty() {
            self.end_row();
        }
        for (text, style) in word {
            if word_width <= self.width {
                self.put(text, columns(text), style)
            } else {
                self.put_cut(text, style)
            }
        }
    }

    fn put(&mut self, text: &str, width: usize, style: &Style) {
        push_text(&mut self.row, text, style);
        self.used += width;
    }

    /// Puts text that may not fit into the row: the row ends where it is full.
    fn put_cut(&mut self, text: &str, style: &Style) {
        for (cluster, width) in clusters(text) {
            if width <= self.width {
                self.put_fitting(cluster, width, style);
                continue;
            }
            // A sequence that is wider than a row: each of its characters by itself, with the marks of no width behind it.
            let mut encoded = [0; 4];
            for c in cluster.chars() {
                let text = c.encode_utf8(&mut encoded);
                self.put_fitting(text, columns(text), style);
            }
        }
    }

    fn put_fitting(&mut self, cluster: &str, width: usize, style: &Style) {
        if width > 0 && self.used > 0 && self.used + width > self.width {
            self.end_row();
        }
        self.put(cluster, width, style);
    }

    fn end_row(&mut self) {
        self.rows.push(Line { spans: std::mem::take(&mut self.row) });
        self.used = 0;
        self.blanks = None;
    }

    fn finish(mut self) -> Vec<Line> {
        self.end_word();
        if !self.row.is_empty() || self.rows.is_empty() {
            self.end_row();
        }
        self.rows
    }
}

/// Whether a row must not begin with the character.
fn closes(cluster: &str) -> bool {
    cluster.starts_with(|c| "、。，．！？：；）〕］｝〉》」』】〗”’…".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(spans: &[(&str, bool)], width: usize) -> Vec<String> {
        let spans: Vec<Span> = spans
            .iter()
            .map(|(text, bold)| Span::new(*text, Style { bold: *bold, ..Style::default() }))
            .collect();
        wrap(&spans, width).iter().map(Line::text).collect()
    }

    #[test]
    fn rows_end_at_words() {
        assert_eq!(rows(&[("one two three", false)], 7), ["one two", "three"]);
        assert_eq!(rows(&[("one tw", false), ("o", true), (" x", false)], 6), ["one", "two x"]);
        assert_eq!(rows(&[("a abcdefgh b", false)], 3), ["a", "abc", "def", "gh", "b"]);
        assert_eq!(rows(&[("a", false), (HARD_BREAK, false), ("b", false)], 3), ["a", "b"]);
        assert_eq!(rows(&[], 3), [""]);
    }

    #[test]
    fn wide_characters_end_rows_and_punctuation_stays() {
        assert_eq!(rows(&[("漢字漢字。漢", false)], 5), ["漢字", "漢", "字。", "漢"]);
        assert_eq!(rows(&[("漢", false)], 1), ["漢"]);
        assert_eq!(rows(&[("👩\u{200d}👧", false)], 3), ["👩\u{200d}", "👧"]);
    }

    #[test]
    fn code_keeps_its_blanks() {
        let rows: Vec<String> =
            fill(&[Span::new("  a  b", Style::default())], 4).iter().map(Line::text).collect();
        assert_eq!(rows, ["  a ", " b"]);
    }
}
