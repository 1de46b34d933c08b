//! Tables: those with data as Markdown, those that only arrange a page as what is in their cells.

use super::{
    dom::{Dom, NodeId},
    tag::Tag,
};

/// What writes the lines of a table, and what is in its cells.
pub(super) trait CellWriter<'d> {
    /// The document.
    fn dom(&self) -> &'d Dom;

    /// The text of a cell: one line in which nothing divides cells.
    fn cell(&mut self, cell: NodeId) -> String;

    /// Writes a line of the table.
    fn table_line(&mut self, line: &str);

    /// Ends the paragraph before the table, or after it.
    fn around_table(&mut self);

    /// Writes what is in a cell of a table that only arranges things.
    fn as_blocks(&mut self, cell: NodeId);

    /// Whether no more is written.
    fn is_full(&self) -> bool;
}

/// Columns that a table of Markdown can have.
const MAX_COLUMNS: usize = 64;

/// A row of a table.
struct Row {
    cells: Vec<NodeId>,
    is_head: bool,
}

/// Writes a table.
pub(super) fn write<'d>(writer: &mut impl CellWriter<'d>, table: NodeId) {
    let dom = writer.dom();
    let rows = rows(dom, table);
    let is_data = is_data(dom, table, &rows);
    writer.around_table();
    if is_data {
        data(writer, &rows);
    } else {
        for row in &rows {
            for cell in &row.cells {
                if writer.is_full() {
                    return;
                }
                writer.as_blocks(*cell);
            }
        }
    }
    writer.around_table();
}

/// The rows of a table, without those of tables in its cells.
fn rows(dom: &Dom, table: NodeId) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut parts = vec![(table, false)];
    while let Some((part, is_head)) = parts.pop() {
        let mut inner = Vec::new();
        for child in dom.children(part) {
            match dom.tag(child) {
                Some(Tag::Thead) => inner.push((child, true)),
                Some(Tag::Tbody) => inner.push((child, false)),
                Some(Tag::Tr) => {
                    let is_cell = |cell: &NodeId| matches!(dom.tag(*cell), Some(Tag::Td | Tag::Th));
                    let cells: Vec<NodeId> = dom.children(child).filter(is_cell).collect();
                    let all_heads = cells.iter().all(|cell| dom.tag(*cell) == Some(Tag::Th));
                    if !cells.is_empty() {
                        rows.push(Row { is_head: is_head || all_heads, cells });
                    }
                }
                _ => {}
            }
        }
        parts.extend(inner.into_iter().rev());
    }
    rows
}

/// Whether a table has data: several rows and columns, and no blocks in its cells that Markdown has no place for.
fn is_data(dom: &Dom, table: NodeId, rows: &[Row]) -> bool {
    if matches!(dom.attribute(table, "role"), Some("presentation" | "none")) {
        return false;
    }
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let has_head = rows.iter().any(|row| row.is_head);
    if columns < 2 || (rows.len() < 2 && !has_head) {
        return false;
    }
    let cells = rows.iter().flat_map(|row| &row.cells);
    let holds_blocks = cells.clone().any(|cell| {
        dom.below(*cell)
            .skip(1)
            .any(|below| matches!(dom.tag(below), Some(Tag::Table | Tag::Pre | Tag::Blockquote)))
    });
    let holds_headings = cells
        .into_iter()
        .any(|cell| dom.below(*cell).any(|below| matches!(dom.tag(below), Some(Tag::Heading(_)))));
    !(holds_headings || (holds_blocks && !has_head))
}

fn data<'d>(writer: &mut impl CellWriter<'d>, rows: &[Row]) {
    let dom = writer.dom();
    let mut is_first = true;
    let mut columns = 0;
    for row in rows {
        if writer.is_full() {
            return;
        }
        let mut texts: Vec<String> = Vec::new();
        for cell in &row.cells {
            texts.push(writer.cell(*cell));
            let span = dom
                .attribute(*cell, "colspan")
                .and_then(|span| span.trim().parse::<usize>().ok())
                .unwrap_or(1);
            let empty = span.saturating_sub(1).min(MAX_COLUMNS);
            texts.extend(std::iter::repeat_n(String::new(), empty));
        }
        texts.truncate(MAX_COLUMNS);
        if is_first {
            columns =
                rows.iter().map(|row| row.cells.len()).max().unwrap_or(1).clamp(texts.len(), MAX_COLUMNS);
        }
        texts.resize(columns.max(texts.len()), String::new());
        writer.table_line(&format!("| {} |", texts.join(" | ")));
        if is_first {
            writer.table_line(&format!("|{}", " --- |".repeat(columns)));
            is_first = false;
        }
    }
}
