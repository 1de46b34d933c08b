//! The blocks of a text, line by line. What a line makes final goes out at once; a block whose look depends on its end is kept, up to a
//! bound.

mod leaf;

use self::leaf::{Leaf, Paragraph, Table};
use crate::{
    block_start::{self, FenceMark, ListMark},
    code::CodeBlock,
    containers::{Containers, quoted},
    html::HtmlBlock,
    inline::InlineOptions,
    style::{Line, Span, Style},
    table::TableHead,
    text::{indent, is_blank},
};

/// A line of the source, or a part of one that is too long to wait for its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceLine<'a> {
    /// Cleaned, without its line feed.
    pub(crate) text: &'a str,
    pub(crate) is_begin: bool,
    pub(crate) is_end: bool,
}

/// The state between two lines. Small: a copy of it shows how the unfinished end looks.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    width: usize,
    pub(crate) options: InlineOptions,
    containers: Containers,
    leaf: Leaf,
    /// Whether there is a row above.
    has_rows: bool,
    /// How many containers continue in the blank lines since the last block.
    blank: Option<usize>,
    /// Whether the last block is set off from the next one.
    sets_off: bool,
}

impl Blocks {
    pub(crate) fn new(width: usize, options: InlineOptions) -> Self {
        Self {
            width,
            options,
            containers: Containers::default(),
            leaf: Leaf::None,
            has_rows: false,
            blank: None,
            sets_off: false,
        }
    }

    /// What follows has another width.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width;
        let room = self.room();
        if let Leaf::Table(table) = &mut self.leaf {
            table.set_width(room);
        }
    }

    /// The rows of the table that is open, where no line can change them but by another row.
    pub(crate) fn open_table(&self) -> Option<&Table> {
        match &self.leaf {
            Leaf::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Takes a line; rows that are final go to `out`.
    pub(crate) fn line(&mut self, line: SourceLine<'_>, out: &mut Vec<Line>) {
        if !line.is_begin {
            self.continue_line(line, out);
            return;
        }
        let (depth, rest) = self.containers.continued(line.text);
        let is_inside = depth == self.containers.depth();
        if is_inside && self.leaf_takes(rest, line.is_end, out) {
            return;
        }
        if is_blank(rest) {
            self.close_to(depth, out);
            if self.has_rows {
                self.blank = Some(depth);
            }
            return;
        }
        self.open(SourceLine { text: rest, ..line }, depth, is_inside, out);
    }

    /// Ends everything.
    pub(crate) fn end(&mut self, out: &mut Vec<Line>) {
        self.close_to(0, out);
    }

    /// Gives a line to the block that takes lines as they are; whether there is one.
    fn leaf_takes(&mut self, rest: &str, is_end: bool, out: &mut Vec<Line>) -> bool {
        let room = self.room();
        let rows = match &mut self.leaf {
            Leaf::Code(code) => {
                if code.is_closed_by(rest) {
                    self.leaf = Leaf::None;
                    return true;
                }
                match code.line(rest, is_end, room) {
                    Some(rows) => rows,
                    // An indented one has ended.
                    None => {
                        self.leaf = Leaf::None;
                        return false;
                    }
                }
            }
            Leaf::Html(html) if !is_blank(rest) => html.line(rest, room),
            _ => return false,
        };
        self.put(rows, out);
        true
    }

    /// Opens the containers and the block that a line begins, or adds it to the paragraph or table.
    fn open(&mut self, line: SourceLine<'_>, depth: usize, is_inside: bool, out: &mut Vec<Line>) {
        let mut rest = line.text;
        // Whether the line has begun a container: then it continues nothing.
        let mut has_begun = false;
        loop {
            let blanks = indent(rest);
            let in_paragraph = !has_begun && matches!(self.leaf, Leaf::Paragraph(_));
            let continues = in_paragraph && is_inside;
            if blanks >= 4 {
                if in_paragraph {
                    break;
                }
                self.begin_leaf(depth, has_begun, true, out);
                let mut code = CodeBlock::indented();
                let rows = code.line(rest, line.is_end, self.room()).unwrap_or_default();
                self.leaf = Leaf::Code(code);
                self.put(rows, out);
                return;
            }
            let body = &rest[blanks..];
            if self.containers.has_room()
                && let Some(inner) = quoted(body)
            {
                self.close_unless(has_begun, depth, out);
                self.containers.push_quote();
                has_begun = true;
                rest = inner;
                if is_blank(rest) {
                    return;
                }
                continue;
            }
            if continues && self.underlined(body, out) {
                return;
            }
            if self.begin_plain_block(body, (depth, has_begun), in_paragraph, out) {
                return;
            }
            if let Some(mark) =
                ListMark::of(body).filter(|mark| self.containers.has_room() && may_begin(*mark, continues))
            {
                self.close_unless(has_begun, depth, out);
                has_begun = true;
                rest = body.get(mark.width..).unwrap_or_default();
                let task = task(rest);
                if task.is_some() {
                    rest = &rest[4..];
                }
                self.containers.push_item(mark, blanks, task);
                if is_blank(rest) {
                    return;
                }
                continue;
            }
            break;
        }
        self.text(
            SourceLine { text: rest.trim_start_matches(' '), ..line },
            (depth, has_begun),
            is_inside,
            out,
        );
    }

    /// Begins a block that one line tells: a rule, a heading, code, HTML.
    fn begin_plain_block(
        &mut self,
        body: &str,
        (depth, has_begun): (usize, bool),
        in_paragraph: bool,
        out: &mut Vec<Line>,
    ) -> bool {
        if block_start::is_rule(body) {
            self.begin_leaf(depth, has_begun, false, out);
            let rule = Span::new("─".repeat(self.room()), Style::faint());
            self.put(vec![Line { spans: vec![rule] }], out);
        } else if let Some((level, text)) = block_start::heading(body) {
            self.begin_leaf(depth, has_begun, true, out);
            let rows = leaf::heading(text, level, self.options, self.room());
            self.put(rows, out);
        } else if let Some((fence, words)) = FenceMark::opening(body) {
            self.begin_leaf(depth, has_begun, true, out);
            let (code, label) = CodeBlock::fenced(fence, words, self.room());
            self.leaf = Leaf::Code(code);
            self.put(label, out);
            self.sets_off = true;
        } else if block_start::is_html(body, in_paragraph) {
            self.begin_leaf(depth, has_begun, false, out);
            let mut html = HtmlBlock::default();
            let rows = html.line(body, self.room());
            self.leaf = Leaf::Html(html);
            self.put(rows, out);
        } else {
            return false;
        }
        true
    }

    /// Makes the paragraph a heading, where the line underlines it.
    fn underlined(&mut self, body: &str, out: &mut Vec<Line>) -> bool {
        let (Leaf::Paragraph(paragraph), Some(level)) = (&mut self.leaf, block_start::underline(body)) else {
            return false;
        };
        if paragraph.is_cut() {
            return false;
        }
        let text = paragraph.take_text();
        self.leaf = Leaf::None;
        self.set_off(true, out);
        let rows = leaf::heading(&text, level, self.options, self.room());
        self.put(rows, out);
        true
    }

    /// Text that begins nothing.
    fn text(
        &mut self,
        line: SourceLine<'_>,
        (depth, has_begun): (usize, bool),
        is_inside: bool,
        out: &mut Vec<Line>,
    ) {
        let options = InlineOptions { goes_on: false, ..self.options };
        match &mut self.leaf {
            Leaf::Paragraph(paragraph) if !has_begun => {
                let head = if is_inside { paragraph.table_head(line.text, options) } else { None };
                match head {
                    Some(head) => self.begin_table(head, out),
                    None => {
                        paragraph.add_line(line.text);
                        self.bound_paragraph(out);
                    }
                }
                return;
            }
            Leaf::Table(table) if !has_begun && is_inside => {
                if let Some(rows) = table.add_row(line.text, options) {
                    self.put(rows, out);
                }
                return;
            }
            _ => {}
        }
        self.close_unless(has_begun, depth, out);
        self.containers.begin_block();
        self.leaf = Leaf::Paragraph(Paragraph::new(line.text));
        self.bound_paragraph(out);
    }

    /// The rest of a line whose beginning was taken.
    fn continue_line(&mut self, line: SourceLine<'_>, out: &mut Vec<Line>) {
        let room = self.room();
        match &mut self.leaf {
            Leaf::Paragraph(paragraph) => {
                paragraph.add_part(line.text);
                self.bound_paragraph(out);
            }
            Leaf::Code(code) => {
                let rows = code.part(line.text, line.is_end, room);
                self.put(rows, out);
            }
            Leaf::Html(html) => {
                let rows = html.line(line.text, room);
                self.put(rows, out);
            }
            Leaf::None | Leaf::Table(_) if is_blank(line.text) => {}
            Leaf::None | Leaf::Table(_) => {
                let depth = self.containers.depth();
                self.close_to(depth, out);
                self.containers.begin_block();
                self.leaf = Leaf::Paragraph(Paragraph::new(line.text.trim_start_matches(' ')));
                self.bound_paragraph(out);
            }
        }
    }

    /// Turns the last line of the paragraph into the head of a table.
    fn begin_table(&mut self, head: TableHead, out: &mut Vec<Line>) {
        if let Leaf::Paragraph(paragraph) = &mut self.leaf {
            paragraph.drop_last_line();
        }
        let depth = self.containers.depth();
        self.close_to(depth, out);
        self.set_off(true, out);
        self.leaf = Leaf::Table(Table::new(head, self.room()));
    }

    /// Sends out the rows of a paragraph that has become long.
    fn bound_paragraph(&mut self, out: &mut Vec<Line>) {
        let room = self.room();
        let Leaf::Paragraph(paragraph) = &mut self.leaf else { return };
        if !paragraph.is_long() {
            return;
        }
        let is_first = !paragraph.is_cut();
        let rows = paragraph.take_rows(self.options, room);
        if is_first {
            self.set_off(false, out);
        }
        self.put(rows, out);
    }

    /// Begins a block of its own: ends the one before, and sets it off.
    fn begin_leaf(&mut self, depth: usize, has_begun: bool, is_set_off: bool, out: &mut Vec<Line>) {
        self.close_unless(has_begun, depth, out);
        self.containers.begin_block();
        self.set_off(is_set_off, out);
    }

    /// An empty row, where the source has one, or one of the blocks around it wants it.
    fn set_off(&mut self, is_wanted: bool, out: &mut Vec<Line>) {
        let is_outermost = self.containers.depth() == 0;
        let blank = self.blank.take();
        let wants = (is_wanted || self.sets_off) && is_outermost;
        self.sets_off = false;
        if self.has_rows && (blank.is_some() || wants) {
            let depth = blank.unwrap_or(0).min(self.containers.depth());
            out.push(Line { spans: self.containers.blank_prefix(depth, self.width) });
        }
        self.has_rows = true;
    }

    fn close_unless(&mut self, has_begun: bool, depth: usize, out: &mut Vec<Line>) {
        if !has_begun {
            self.close_to(depth, out);
        }
    }

    /// Ends the block, and the containers deeper than `depth`.
    fn close_to(&mut self, depth: usize, out: &mut Vec<Line>) {
        match std::mem::take(&mut self.leaf) {
            // Their rows are out.
            Leaf::None | Leaf::Code(_) | Leaf::Html(_) => {}
            Leaf::Paragraph(paragraph) => {
                if !paragraph.is_cut() && !paragraph.is_empty() {
                    self.set_off(false, out);
                }
                let rows = paragraph.end(self.options, self.room());
                self.put(rows, out);
            }
            Leaf::Table(table) => {
                let rows = table.end();
                self.put(rows, out);
                self.sets_off = true;
            }
        }
        if self.containers.has_unshown(depth) {
            // An item without content has its mark alone.
            self.set_off(false, out);
            self.put(vec![Line::default()], out);
        }
        self.containers.truncate(depth);
    }

    /// The columns for a block's text.
    fn room(&self) -> usize {
        self.width.saturating_sub(self.containers.prefix_width(self.width)).max(1)
    }

    /// Sends out rows, each behind the marks of the containers.
    fn put(&mut self, rows: Vec<Line>, out: &mut Vec<Line>) {
        if self.containers.depth() == 0 {
            out.extend(rows);
            return;
        }
        for row in rows {
            let mut spans = self.containers.prefix(self.width);
            spans.extend(row.spans);
            out.push(Line { spans });
        }
    }
}

/// Whether an item may begin here: in a paragraph only one with content, and with the number 1.
fn may_begin(mark: ListMark, in_paragraph: bool) -> bool {
    !in_paragraph || (!mark.is_empty && mark.number.is_none_or(|number| number == 1))
}

/// Whether a task is done, if an item is one.
fn task(content: &str) -> Option<bool> {
    match content.get(..4)? {
        "[ ] " => Some(false),
        "[x] " | "[X] " => Some(true),
        _ => None,
    }
}
