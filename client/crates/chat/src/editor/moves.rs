//! Moves of the cursor, and the rows that the text takes on the screen.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};
use unicode_width::UnicodeWidthStr as _;

use super::buffer::{Editor, LastEdit};

/// A move of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Up,
    Down,
    Start,
    End,
}

/// The cursor on the screen, and the rows of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorRow {
    pub(crate) rows: Vec<String>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Editor {
    /// Moves the cursor; false where it cannot go on.
    pub(crate) fn go(&mut self, to: Move, width: usize) -> bool {
        let before = self.cursor;
        self.last = LastEdit::Other;
        self.yanked = None;
        let aimed = self.aimed_column.take();
        match to {
            Move::Left => self.cursor = self.before(self.cursor),
            Move::Right => self.cursor = self.after(self.cursor),
            Move::WordLeft => self.cursor = self.word_before(),
            Move::WordRight => self.cursor = self.word_after(),
            Move::LineStart => self.cursor = self.line_start(),
            Move::LineEnd => self.cursor = self.line_end(),
            Move::Start => self.cursor = 0,
            Move::End => self.cursor = self.text.len(),
            Move::Up | Move::Down => self.go_row(to == Move::Down, aimed, width),
        }
        self.snap();
        self.cursor != before
    }

    fn go_row(&mut self, is_down: bool, aimed: Option<usize>, width: usize) {
        let rows = rows_of(&self.text, width);
        let (row, column) = place(&rows, &self.text, self.cursor);
        let aimed = aimed.unwrap_or(column);
        let target = if is_down { row + 1 } else { row.wrapping_sub(1) };
        let Some((start, end)) = rows.get(target).copied() else { return };
        let mut cursor = start;
        let mut reached = 0;
        for grapheme in self.text[start..end].graphemes(true) {
            let next = reached + grapheme.width();
            if next > aimed {
                break;
            }
            reached = next;
            cursor += grapheme.len();
        }
        // The place behind the last letter of a wrapped row is the beginning of the next one.
        if cursor == end && rows.get(target + 1).is_some_and(|next| next.0 == end) && cursor > start {
            cursor = self.before(cursor);
        }
        self.cursor = cursor;
        self.aimed_column = Some(aimed);
    }

    /// The rows of the text at a width, and the cursor among them.
    pub(crate) fn rows(&self, width: usize) -> CursorRow {
        let rows = rows_of(&self.text, width);
        let (row, column) = place(&rows, &self.text, self.cursor);
        let rows = rows.into_iter().map(|(start, end)| self.text[start..end].to_owned()).collect();
        CursorRow { rows, row, column }
    }

    pub(super) fn before(&self, at: usize) -> usize {
        if at > 0
            && let Some(token) = self.pastes.token_around(&self.text, at - 1)
            && token.end == at
        {
            return token.start;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    pub(super) fn after(&self, at: usize) -> usize {
        if let Some(token) = self.pastes.token_around(&self.text, at) {
            return token.end;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    pub(super) fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    pub(super) fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    pub(super) fn word_before(&self) -> usize {
        let head = &self.text[..self.cursor];
        let trimmed = head.trim_end_matches(|c: char| !is_word(c));
        trimmed.trim_end_matches(is_word).len()
    }

    pub(super) fn word_after(&self) -> usize {
        let tail = &self.text[self.cursor..];
        let word = tail.trim_start_matches(|c: char| !is_word(c));
        self.text.len() - word.trim_start_matches(is_word).len()
    }

    /// The beginning of the white-space separated word before the cursor.
    pub(super) fn long_word_before(&self) -> usize {
        let head = self.text[..self.cursor].trim_end();
        head.trim_end_matches(|c: char| !c.is_whitespace()).len()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The rows as ranges of bytes: broken at line feeds, and where the width ends.
fn rows_of(text: &str, width: usize) -> Vec<(usize, usize)> {
    let width = width.max(2);
    let mut rows = Vec::new();
    let mut start = 0;
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        if grapheme == "\n" {
            rows.push((start, at));
            start = at + 1;
            used = 0;
            continue;
        }
        let columns = grapheme.width();
        if used + columns > width {
            rows.push((start, at));
            start = at;
            used = 0;
        }
        used += columns;
    }
    rows.push((start, text.len()));
    // The cursor stands behind a full row, on one of its own.
    if used >= width {
        rows.push((text.len(), text.len()));
    }
    rows
}

fn place(rows: &[(usize, usize)], text: &str, cursor: usize) -> (usize, usize) {
    let row = rows.iter().rposition(|(start, _)| *start <= cursor).unwrap_or(0);
    let (start, end) = rows[row];
    (row, text[start..cursor.min(end)].width())
}
