//! Tables: their rows, and their layout in the width that there is.

use std::borrow::Cow;

use crate::{
    inline::{InlineOptions, parse},
    style::{HARD_BREAK, Line, Span, Style, push_text},
    text::{columns, is_blank},
    wrap::wrap,
};

/// The most columns of a table; a line with more is text.
const MAX_COLUMNS: usize = 64;

/// The narrowest column that is still read well. Below it, a row becomes a list of its cells.
const MIN_COLUMN: usize = 6;

/// What stands between columns.
const BETWEEN: &str = " │ ";

/// A cell: its pieces.
type Cell = Vec<Span>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Left,
    Center,
    Right,
}

/// The columns of a table, from its second line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableHead {
    alignments: Vec<Alignment>,
    titles: Vec<Cell>,
}

/// How rows are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableLayout {
    /// Columns of these widths; with lines between rows where cells have several lines.
    Columns { widths: Vec<usize>, lines_between: bool },
    /// The cells below each other.
    List,
}

impl TableLayout {
    /// The columns that its rows take at least.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Columns { widths, .. } => {
                widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * columns(BETWEEN)
            }
            Self::List => 0,
        }
    }
}

impl TableHead {
    /// The head, if `delimiters` is the second line of a table that has `titles` as its first.
    pub(crate) fn of(titles: &str, delimiters: &str, options: InlineOptions) -> Option<Self> {
        let is_delimiter = |c| matches!(c, '-' | ':' | '|' | ' ');
        if !delimiters.contains('-') || !delimiters.chars().all(is_delimiter) {
            return None;
        }
        let alignments: Vec<Alignment> = cells(delimiters).map(alignment).collect::<Option<_>>()?;
        let bold = Style { bold: true, ..Style::default() };
        let count = cells(titles).take(MAX_COLUMNS + 1).count();
        // A single column needs a bar, or any list with a rule below would be a table.
        let is_table = count == alignments.len()
            && count <= MAX_COLUMNS
            && (count > 1 || (titles.contains('|') && delimiters.contains('|')));
        is_table.then(|| Self {
            alignments,
            titles: cells(titles).map(|cell| parse(&unescaped(cell), &bold, options)).collect(),
        })
    }

    /// The cells of a row: as many as there are columns. More belong to the last one, so that nothing is lost.
    pub(crate) fn row(&self, line: &str, options: InlineOptions) -> Vec<Cell> {
        let mut row: Vec<Cell> = Vec::with_capacity(self.titles.len());
        for cell in cells(line) {
            let parsed = parse(&unescaped(cell), &Style::default(), options);
            let is_full = row.len() == self.titles.len();
            match row.last_mut() {
                Some(last) if is_full => {
                    push_text(last, " ", &Style::default());
                    last.extend(parsed);
                }
                _ => row.push(parsed),
            }
        }
        row.resize(self.titles.len(), Vec::new());
        row
    }

    /// The best layout for these rows in a width.
    pub(crate) fn layout(&self, rows: &[Vec<Cell>], width: usize) -> TableLayout {
        let count = self.titles.len();
        let mut natural = vec![1; count];
        for row in std::iter::once(&self.titles).chain(rows) {
            for (widest, cell) in natural.iter_mut().zip(row) {
                *widest = (*widest).max(cell_width(cell));
            }
        }
        let room = width.saturating_sub((count - 1) * columns(BETWEEN));
        let Some(widths) = shared_out(&natural, room) else { return TableLayout::List };
        let lines_between = widths.iter().zip(&natural).any(|(width, natural)| width < natural);
        TableLayout::Columns { widths, lines_between }
    }

    /// The rows of the head.
    pub(crate) fn head_lines(&self, layout: &TableLayout) -> Vec<Line> {
        let TableLayout::Columns { widths, .. } = layout else { return Vec::new() };
        let mut lines = self.in_columns(&self.titles, widths);
        lines.push(rule(widths));
        lines
    }

    /// The titles below each other, for a table without rows.
    pub(crate) fn title_lines(&self, width: usize) -> Vec<Line> {
        self.titles.iter().flat_map(|title| wrap(title, width)).collect()
    }

    /// The rows of the terminal for a row of the table.
    pub(crate) fn row_lines(
        &self,
        row: &[Cell],
        layout: &TableLayout,
        is_first: bool,
        width: usize,
    ) -> Vec<Line> {
        match layout {
            TableLayout::Columns { widths, lines_between } => {
                let mut lines = if *lines_between && !is_first { vec![rule(widths)] } else { Vec::new() };
                lines.extend(self.in_columns(row, widths));
                lines
            }
            TableLayout::List => self.as_list(row, is_first, width),
        }
    }

    fn in_columns(&self, row: &[Cell], widths: &[usize]) -> Vec<Line> {
        let wrapped: Vec<Vec<Line>> =
            row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let mut lines = Vec::with_capacity(height);
        for at in 0..height {
            let mut spans = Vec::new();
            for (column, cell) in wrapped.iter().enumerate() {
                if column > 0 {
                    push_text(&mut spans, BETWEEN, &Style::faint());
                }
                let empty = Line::default();
                let line = cell.get(at).unwrap_or(&empty);
                let left = widths[column].saturating_sub(line.width());
                let before = match self.alignments[column] {
                    Alignment::Left => 0,
                    Alignment::Center => left / 2,
                    Alignment::Right => left,
                };
                push_text(&mut spans, &" ".repeat(before), &Style::default());
                for span in &line.spans {
                    push_text(&mut spans, &span.text, &span.style);
                }
                if column + 1 < wrapped.len() {
                    push_text(&mut spans, &" ".repeat(left - before), &Style::default());
                }
            }
            lines.push(Line { spans });
        }
        lines
    }

    /// `title: cell`, each in lines of its own.
    fn as_list(&self, row: &[Cell], is_first: bool, width: usize) -> Vec<Line> {
        let mut lines = if is_first { Vec::new() } else { vec![Line::default()] };
        for (title, cell) in self.titles.iter().zip(row) {
            let mut spans = title.clone();
            if !title.is_empty() && !cell.is_empty() {
                spans.push(Span::new(": ", Style { bold: true, ..Style::default() }));
            }
            spans.extend(cell.iter().cloned());
            if !spans.is_empty() {
                lines.extend(wrap(&spans, width));
            }
        }
        lines
    }
}

/// The cells of a line: bars separate them, but not escaped ones.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_matches(' ');
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        match bar(text) {
            Some(at) => {
                let after = &text[at + 1..];
                rest = (!is_blank(after)).then_some(after);
                Some(text[..at].trim_matches(' '))
            }
            None => {
                rest = None;
                Some(text.trim_matches(' '))
            }
        }
    })
}

/// The text of a cell: an escaped bar is a bar, also in code.
fn unescaped(cell: &str) -> Cow<'_, str> {
    if cell.contains("\\|") { Cow::Owned(cell.replace("\\|", "|")) } else { Cow::Borrowed(cell) }
}

/// Where the next bar is.
fn bar(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_bar = byte == b'|' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_bar
    })
}

fn alignment(cell: &str) -> Option<Alignment> {
    let (left, right) = (cell.starts_with(':'), cell.len() > 1 && cell.ends_with(':'));
    let dashes = cell.trim_matches(':');
    if dashes.is_empty() || dashes.bytes().any(|byte| byte != b'-') {
        return None;
    }
    Some(match (left, right) {
        (true, true) => Alignment::Center,
        (false, true) => Alignment::Right,
        _ => Alignment::Left,
    })
}

/// The columns of the widest line of a cell.
fn cell_width(cell: &[Span]) -> usize {
    let lines = cell.split(|span| span.text == HARD_BREAK);
    lines.map(|line| line.iter().map(|span| columns(&span.text)).sum()).max().unwrap_or(0)
}

/// The widths of columns that want `natural` and have `room` in all: the widest ones give way. `None` where that leaves too little.
fn shared_out(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|column| natural[*column]);
    let mut widths = vec![0; natural.len()];
    let mut left = room;
    for (done, column) in order.iter().enumerate() {
        let share = left / (natural.len() - done);
        let width = natural[*column].min(share);
        if width < natural[*column].min(MIN_COLUMN) {
            return None;
        }
        widths[*column] = width;
        left -= width;
    }
    Some(widths)
}

fn rule(widths: &[usize]) -> Line {
    let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    Line { spans: vec![Span::new(parts.join("─┼─"), Style::faint())] }
}
