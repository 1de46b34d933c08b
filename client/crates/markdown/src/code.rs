//! Code: each line as it is, a little indented.

use crate::{
    block_start::FenceMark,
    highlight::Highlighter,
    style::{Line, Span, Style},
    text::is_blank,
    wrap::fill,
};

/// The columns before code. Narrow screens have none.
const INDENT: usize = 2;

/// The narrowest block whose code is indented.
const MIN_INDENTED: usize = 12;

/// A block of code.
#[derive(Debug, Clone)]
pub(crate) struct CodeBlock {
    /// `None` for an indented one.
    fence: Option<FenceMark>,
    /// The blank lines that may be part of an indented block.
    blanks: usize,
    /// The row that the current line goes on in.
    row: Vec<Span>,
    colours: Highlighter,
}

impl CodeBlock {
    pub(crate) fn indented() -> Self {
        Self { fence: None, blanks: 0, row: Vec::new(), colours: Highlighter::default() }
    }

    /// A block between fences, and the row that names its language.
    pub(crate) fn fenced(fence: FenceMark, words: &str, width: usize) -> (Self, Vec<Line>) {
        let label = if words.is_empty() {
            Vec::new()
        } else {
            indented(fill(&[Span::new(words, Style::faint())], inner(width)), width)
        };
        (Self { fence: Some(fence), blanks: 0, row: Vec::new(), colours: Highlighter::of(words) }, label)
    }

    /// Whether the line is the closing fence.
    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let blanks = crate::text::indent(line);
        blanks < 4 && self.fence.is_some_and(|fence| fence.is_closed_by(&line[blanks..]))
    }

    /// The rows of a line; `None` where it is no longer part of an indented block.
    pub(crate) fn line(&mut self, line: &str, is_end: bool, width: usize) -> Option<Vec<Line>> {
        if self.fence.is_some() {
            return Some(self.part(line, is_end, width));
        }
        if is_blank(line) {
            self.blanks += 1;
            return Some(Vec::new());
        }
        let code = line.strip_prefix("    ")?;
        let mut rows = vec![Line::default(); std::mem::take(&mut self.blanks)];
        rows.extend(self.part(code, is_end, width));
        Some(rows)
    }

    /// The rows of a part of a line.
    pub(crate) fn part(&mut self, part: &str, is_end: bool, width: usize) -> Vec<Line> {
        let mut spans = std::mem::take(&mut self.row);
        self.colours.line(part, &mut spans);
        let mut rows = fill(&spans, inner(width));
        if !is_end {
            self.row = rows.pop().unwrap_or_default().spans;
        }
        indented(rows, width)
    }
}

fn inner(width: usize) -> usize {
    if width < MIN_INDENTED { width } else { width - INDENT }
}

fn indented(mut rows: Vec<Line>, width: usize) -> Vec<Line> {
    if width >= MIN_INDENTED {
        for row in rows.iter_mut().filter(|row| row.spans.iter().any(|span| !span.text.is_empty())) {
            row.spans.insert(0, Span::new(" ".repeat(INDENT), Style::default()));
        }
    }
    rows
}
