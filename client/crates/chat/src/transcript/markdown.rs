//! Answers as rows. The one place that knows how Markdown is drawn.

use ratatui_core::text::Line;

use crate::text::wrap;

/// The rows of a text that grows. What cannot change any more is laid out once.
#[derive(Debug, Default)]
pub(super) struct GrowingText {
    width: usize,
    /// How many bytes are laid out for good.
    settled: usize,
    rows: Vec<Line<'static>>,
    /// How many of the rows are for good.
    settled_rows: usize,
}

impl GrowingText {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Brings the rows up to date with the text, of which what was given before is the beginning.
    pub(super) fn grow(&mut self, text: &str) {
        self.rows.truncate(self.settled_rows);
        if let Some(end) = text[self.settled..].rfind('\n') {
            let piece = &text[self.settled..self.settled + end];
            self.rows.extend(wrap(piece, self.width).into_iter().map(Line::raw));
            self.settled += end + 1;
            self.settled_rows = self.rows.len();
        }
        if self.settled < text.len() {
            self.rows.extend(wrap(&text[self.settled..], self.width).into_iter().map(Line::raw));
        }
    }

    pub(super) fn rows(&self) -> &[Line<'static>] {
        &self.rows
    }
}

/// The rows of a whole text.
pub(super) fn rows(text: &str, width: usize) -> Vec<Line<'static>> {
    wrap(text, width).into_iter().map(Line::raw).collect()
}
