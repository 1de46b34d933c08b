//! The block that lines go into.

use std::sync::Arc;

use crate::{
    code::CodeBlock,
    html::HtmlBlock,
    inline::{InlineOptions, parse},
    style::{Line, Span, Style},
    table::{TableHead, TableLayout},
    wrap::wrap,
};

/// The longest text of a paragraph that is kept, in bytes: its look may change until its end. Then its rows go out, and emphasis
/// that is open is not closed any more.
const MAX_PARAGRAPH: usize = 2048;

/// The most rows of a table that are kept until the widths of its columns are settled.
const MAX_ROWS: usize = 64;

/// The most text of a table that is kept, in bytes.
const MAX_TABLE: usize = 16 * 1024;

#[derive(Debug, Clone, Default)]
pub(super) enum Leaf {
    #[default]
    None,
    Paragraph(Paragraph),
    Code(CodeBlock),
    Html(HtmlBlock),
    Table(Table),
}

/// The rows of a heading.
pub(super) fn heading(text: &str, level: usize, options: InlineOptions, width: usize) -> Vec<Line> {
    wrap(&parse(text.trim_end_matches(' '), &Style::heading(level), options), width)
}

/// A paragraph.
#[derive(Debug, Clone, Default)]
pub(super) struct Paragraph {
    text: String,
    /// The last row of what has gone out, which the text goes on in.
    row: Vec<Span>,
    is_cut: bool,
}

impl Paragraph {
    pub(super) fn new(line: &str) -> Self {
        Self { text: line.to_owned(), ..Self::default() }
    }

    /// Whether rows of it have gone out.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.row.is_empty()
    }

    pub(super) fn is_long(&self) -> bool {
        self.text.len() > MAX_PARAGRAPH
    }

    pub(super) fn add_line(&mut self, line: &str) {
        self.text.push('\n');
        self.text.push_str(line);
    }

    /// Adds to the last line.
    pub(super) fn add_part(&mut self, part: &str) {
        self.text.push_str(part);
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The head of the table that the last line and `delimiters` begin.
    pub(super) fn table_head(&self, delimiters: &str, options: InlineOptions) -> Option<TableHead> {
        if self.is_cut {
            return None;
        }
        let last = self.text.rsplit('\n').next().unwrap_or_default();
        TableHead::of(last, delimiters, options)
    }

    pub(super) fn drop_last_line(&mut self) {
        self.text.truncate(self.text.rfind('\n').unwrap_or(0));
    }

    /// The rows up to now but the last one, which goes on.
    pub(super) fn take_rows(&mut self, options: InlineOptions, width: usize) -> Vec<Line> {
        let options = InlineOptions { goes_on: false, ..options };
        let text = self.take_text();
        let mut rows = self.rows(&text, options, width);
        self.row = rows.pop().unwrap_or_default().spans;
        self.is_cut = true;
        rows
    }

    pub(super) fn end(mut self, options: InlineOptions, width: usize) -> Vec<Line> {
        if self.is_empty() {
            return Vec::new();
        }
        let text = self.take_text();
        self.rows(text.trim_end_matches([' ', '\n']), options, width)
    }

    fn rows(&mut self, text: &str, options: InlineOptions, width: usize) -> Vec<Line> {
        let mut spans = std::mem::take(&mut self.row);
        spans.append(&mut parse(text, &Style::default(), options));
        wrap(&spans, width)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    head: Arc<TableHead>,
    /// The rows that are kept. Shared with copies, which show how the table looks now.
    rows: Arc<Vec<Vec<Vec<Span>>>>,
    bytes: usize,
    width: usize,
    /// The layout, once rows have gone out.
    layout: Option<TableLayout>,
}

impl Table {
    pub(super) fn new(head: TableHead, width: usize) -> Self {
        Self { head: Arc::new(head), rows: Arc::default(), bytes: 0, width, layout: None }
    }

    /// Rows that follow have another width. Columns that no longer fit become lists.
    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width;
        if self.layout.as_ref().is_some_and(|layout| layout.width() > width) {
            self.layout = Some(TableLayout::List);
        }
    }

    /// How many rows are kept: with the rows, the look changes.
    pub(crate) fn kept(&self) -> usize {
        self.rows.len()
    }

    /// Takes a row; gives the rows of the terminal that are final.
    pub(super) fn add_row(&mut self, line: &str, options: InlineOptions) -> Option<Vec<Line>> {
        let row = self.head.row(line, options);
        if let Some(layout) = &self.layout {
            return Some(self.head.row_lines(&row, layout, false, self.width));
        }
        self.bytes += line.len();
        Arc::make_mut(&mut self.rows).push(row);
        if self.rows.len() < MAX_ROWS && self.bytes < MAX_TABLE {
            return None;
        }
        let layout = self.head.layout(&self.rows, self.width);
        let lines = self.lines(&layout);
        self.rows = Arc::default();
        self.layout = Some(layout);
        Some(lines)
    }

    pub(super) fn end(&self) -> Vec<Line> {
        if self.layout.is_some() {
            return Vec::new();
        }
        self.lines(&self.head.layout(&self.rows, self.width))
    }

    fn lines(&self, layout: &TableLayout) -> Vec<Line> {
        let mut lines = self.head.head_lines(layout);
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.head.row_lines(row, layout, at == 0, self.width));
        }
        if lines.is_empty() {
            // A list of no rows: the titles are shown at least.
            lines = self.head.title_lines(self.width);
        }
        lines
    }
}
