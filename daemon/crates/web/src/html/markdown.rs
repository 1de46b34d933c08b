//! The Markdown of a part of a page.
//!
//! Lines are written as soon as they are known, each behind the prefix of the quotes and lists that it stands in. The output is bounded,
//! and so is the depth.

use reqwest::Url;

use super::{
    content::Parts,
    dom::{Dom, NodeId, is_space, push_collapsed},
    marks::{inline_code, is_gutter, longest_run, wrapped},
    table::{self, CellWriter},
    tag::Tag,
};

/// Quotes and lists within each other that are shown as such.
const MAX_NESTED: usize = 12;

/// Elements within each other that are followed.
const MAX_DEPTH: usize = 600;

/// What has to stand before the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nothing,
    Line,
    Paragraph,
}

/// What stands before each line of a quote or a list item.
struct Prefix {
    /// Before the first line, in the place of `rest`.
    first: Option<String>,
    rest: String,
}

/// Writes Markdown.
pub(super) struct Writer<'d> {
    pub(super) dom: &'d Dom,
    pub(super) base: &'d Url,
    parts: &'d Parts,
    /// Whether what surrounds the content is left out.
    prunes: bool,
    out: String,
    most: usize,
    prefixes: Vec<Prefix>,
    gap: Gap,
    /// The text of the paragraph that is being written.
    pub(super) line: String,
    depth: usize,
    /// Whether blocks are only white space: in headings, links and cells.
    is_inline: bool,
    is_full: bool,
}

impl<'d> Writer<'d> {
    /// A writer of the content, without what surrounds it; at most some `most` bytes.
    pub(super) fn new(dom: &'d Dom, base: &'d Url, parts: &'d Parts, most: usize) -> Self {
        Self {
            dom,
            base,
            parts,
            prunes: true,
            out: String::new(),
            most,
            prefixes: Vec::new(),
            gap: Gap::Nothing,
            line: String::new(),
            depth: 0,
            is_inline: false,
            is_full: false,
        }
    }

    /// A writer of everything that is shown.
    pub(super) fn unpruned(dom: &'d Dom, base: &'d Url, parts: &'d Parts, most: usize) -> Self {
        Self { prunes: false, ..Self::new(dom, base, parts, most) }
    }

    /// The Markdown, and whether it is longer than it may be.
    pub(super) fn finish(mut self) -> (String, bool) {
        self.flush();
        let mut out = self.out;
        if out.len() > self.most {
            out.truncate(out.floor_char_boundary(self.most));
            self.is_full = true;
        }
        (out, self.is_full)
    }

    /// Writes an element, which is the whole content.
    pub(super) fn content(&mut self, root: NodeId) {
        self.children(root);
        self.flush();
    }

    pub(super) fn children(&mut self, node: NodeId) {
        let dom = self.dom;
        for child in dom.children(node) {
            if self.is_full {
                return;
            }
            self.node(child);
        }
    }

    fn node(&mut self, node: NodeId) {
        if let Some(text) = self.dom.text(node) {
            return push_collapsed(&mut self.line, text);
        }
        let Some(tag) = self.dom.tag(node) else { return };
        if tag.is_silent() || (self.prunes && self.parts.is_left_out(self.dom, node)) {
            return;
        }
        if self.depth >= MAX_DEPTH {
            let text = self.dom.plain_text(node, 10_000);
            return push_collapsed(&mut self.line, &text);
        }
        self.depth += 1;
        self.element(node, tag);
        self.depth -= 1;
    }

    fn element(&mut self, node: NodeId, tag: Tag) {
        if self.is_inline && tag.is_block() && !matches!(tag, Tag::Pre) {
            self.line.push(' ');
            self.children(node);
            return self.line.push(' ');
        }
        match tag {
            Tag::Heading(level) => self.heading(node, level),
            Tag::Br => self.line.push('\n'),
            Tag::Hr => {
                self.block(Gap::Paragraph);
                self.write_line("---");
                self.block(Gap::Paragraph);
            }
            Tag::Ul | Tag::Ol => self.list(node, tag == Tag::Ol),
            Tag::Li => self.item(node, "- ".to_owned()),
            Tag::Blockquote => {
                self.block(Gap::Paragraph);
                self.nested(Prefix { first: None, rest: "> ".to_owned() }, node);
                self.block(Gap::Paragraph);
            }
            Tag::Pre => self.code_block(node),
            Tag::Table => self.table(node),
            Tag::Dt | Tag::Summary => {
                self.block(Gap::Paragraph);
                let text = self.inline(node);
                self.paragraph_text(&wrapped(&text, "**"));
                self.block(Gap::Line);
            }
            Tag::Dd => {
                self.block(Gap::Line);
                self.nested(Prefix { first: Some(": ".to_owned()), rest: "  ".to_owned() }, node);
                self.block(Gap::Line);
            }
            Tag::A => self.link(node),
            Tag::Img => self.image(node),
            Tag::Em => self.wrapped_children(node, "*"),
            Tag::Strong => self.wrapped_children(node, "**"),
            Tag::Del => self.wrapped_children(node, "~~"),
            Tag::Code => self.code(node),
            Tag::Quote => {
                self.line.push('"');
                self.children(node);
                self.line.push('"');
            }
            Tag::Math => self.math(node),
            Tag::Input => self.input(node),
            tag if tag.is_block() => {
                let gap = if matches!(tag, Tag::P | Tag::Figure | Tag::Article | Tag::Section | Tag::Details)
                {
                    Gap::Paragraph
                } else {
                    self.gap_of_division(node)
                };
                self.block(gap);
                self.children(node);
                self.block(gap);
            }
            _ => self.children(node),
        }
    }

    /// What divides a `div` and its like from others: it is a paragraph, unless it stands in an item of a list.
    fn gap_of_division(&self, node: NodeId) -> Gap {
        let is_in_item = self.dom.parent(node).and_then(|parent| self.dom.tag(parent)) == Some(Tag::Li);
        if is_in_item { Gap::Line } else { Gap::Paragraph }
    }

    /// Ends the paragraph before a block, or after it.
    fn block(&mut self, gap: Gap) {
        if self.is_inline {
            return self.line.push(' ');
        }
        self.flush();
        // Right behind the mark of an item, no paragraph has come to its end yet.
        let is_at_mark = self.prefixes.last().is_some_and(|prefix| prefix.first.is_some());
        self.gap = self.gap.max(if is_at_mark { gap.min(Gap::Line) } else { gap });
    }

    /// Writes the paragraph so far.
    fn flush(&mut self) {
        if self.is_inline || self.line.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.line);
        self.paragraph_text(&text);
        self.line = text;
        self.line.clear();
    }

    /// Writes a text of one or several lines.
    fn paragraph_text(&mut self, text: &str) {
        if self.is_inline {
            return self.line.push_str(text);
        }
        if text.trim_matches(is_space).is_empty() {
            return;
        }
        let mut blank = false;
        for line in text.trim_matches(is_space).split('\n') {
            let line = line.trim_matches(is_space);
            // Several breaks are one empty line.
            if line.is_empty() {
                blank = true;
                continue;
            }
            if blank {
                self.gap = Gap::Paragraph;
                blank = false;
            }
            self.write_line(line);
        }
    }

    /// Writes one line as it is, after the gap that is due.
    fn write_line(&mut self, line: &str) {
        if self.out.len() + line.len() > self.most {
            self.is_full = true;
        }
        if self.out.len() > self.most {
            return;
        }
        if !self.out.is_empty() && self.gap == Gap::Paragraph {
            let length = self.out.len();
            for prefix in &self.prefixes {
                // The first line of an item has not been written yet: the blank one stands before it.
                if prefix.first.is_some() {
                    break;
                }
                self.out.push_str(&prefix.rest);
            }
            let kept = self.out[length..].trim_end().len();
            self.out.truncate(length + kept);
            self.out.push('\n');
        }
        for prefix in &mut self.prefixes {
            match prefix.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(&prefix.rest),
            }
        }
        self.out.push_str(line);
        let kept = self.out.trim_end_matches([' ', '\t']).len();
        self.out.truncate(kept);
        self.out.push('\n');
        self.gap = Gap::Nothing;
    }

    /// Writes the children of a node behind a prefix.
    fn nested(&mut self, prefix: Prefix, node: NodeId) {
        let is_shown = self.prefixes.len() < MAX_NESTED;
        if is_shown {
            self.prefixes.push(prefix);
        }
        self.children(node);
        self.flush();
        if is_shown {
            self.prefixes.pop();
        }
    }

    fn heading(&mut self, node: NodeId, level: u8) {
        self.block(Gap::Paragraph);
        let text = self.inline(node);
        let text = text.trim_end_matches(['#', '¶', '§', ' ']);
        if !text.is_empty() {
            self.write_line(&format!("{} {text}", "#".repeat(usize::from(level))));
        }
        self.block(Gap::Paragraph);
    }

    fn list(&mut self, node: NodeId, is_ordered: bool) {
        let is_nested = self.dom.parent(node).and_then(|parent| self.dom.tag(parent)) == Some(Tag::Li);
        let gap = if is_nested { Gap::Line } else { Gap::Paragraph };
        self.block(gap);
        let mut number =
            self.dom.attribute(node, "start").and_then(|start| start.trim().parse::<i64>().ok()).unwrap_or(1);
        let dom = self.dom;
        for child in dom.children(node) {
            if self.is_full {
                break;
            }
            if dom.tag(child) != Some(Tag::Li) {
                self.node(child);
            } else if !(self.prunes && self.parts.is_left_out(dom, child)) {
                let marker = if is_ordered { format!("{number}. ") } else { "- ".to_owned() };
                number = number.saturating_add(1);
                self.item(child, marker);
            }
        }
        self.block(gap);
    }

    fn item(&mut self, node: NodeId, marker: String) {
        self.block(Gap::Line);
        let rest = " ".repeat(marker.len());
        self.nested(Prefix { first: Some(marker), rest }, node);
        self.block(Gap::Line);
    }

    fn code_block(&mut self, node: NodeId) {
        let mut text = String::new();
        self.raw_text(node, &mut text);
        let text = text.trim_end_matches(['\n', ' ', '\t']);
        let text = text.strip_prefix('\n').unwrap_or(text);
        if self.is_inline {
            return self.line.push_str(&inline_code(text));
        }
        if text.trim().is_empty() {
            return;
        }
        self.block(Gap::Paragraph);
        let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
        self.write_line(&format!("{fence}{}", self.language(node)));
        for line in text.split('\n') {
            self.write_line(line);
        }
        self.write_line(&fence);
        self.block(Gap::Paragraph);
    }

    /// The text of code, with its white space and without numbers of lines.
    pub(super) fn raw_text(&self, node: NodeId, text: &mut String) {
        let mut skipped: Option<NodeId> = None;
        for below in self.dom.below(node) {
            if let Some(above) = skipped {
                if self.dom.ancestors(below).any(|one| one == above) {
                    continue;
                }
                skipped = None;
            }
            if let Some(piece) = self.dom.text(below) {
                text.push_str(&piece.replace('\r', ""));
            } else if self.dom.tag(below) == Some(Tag::Br) {
                text.push('\n');
            } else if self.dom.tag(below).is_some_and(Tag::is_silent)
                || self.dom.attribute(below, "class").is_some_and(is_gutter)
                || self.dom.tag(below) == Some(Tag::Button)
            {
                skipped = Some(below);
            } else if self.dom.tag(below).is_some_and(Tag::is_block)
                && !text.is_empty()
                && !text.ends_with('\n')
            {
                text.push('\n');
            }
            if text.len() > self.most {
                return;
            }
        }
    }

    /// The language that a block of code, or something close to it, is marked with.
    fn language(&self, node: NodeId) -> String {
        let dom = self.dom;
        let inner = dom.children(node).find(|child| dom.tag(*child) == Some(Tag::Code));
        let around = dom.ancestors(node).take(2);
        for node in inner.into_iter().chain([node]).chain(around) {
            let marked = dom.attribute(node, "data-lang").or_else(|| dom.attribute(node, "data-language"));
            let classes = dom.attribute(node, "class").into_iter().flat_map(str::split_whitespace);
            let of_class = |class: &'d str| {
                ["language-", "lang-", "highlight-source-", "highlight-"]
                    .iter()
                    .find_map(|start| class.strip_prefix(start))
            };
            let found = marked.or_else(|| classes.take(16).find_map(of_class)).unwrap_or_default();
            let is_plain = |letter: char| {
                letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '#' | '.' | '_')
            };
            if !found.is_empty() && found.len() <= 24 && found.chars().all(is_plain) && found != "default" {
                return found.to_ascii_lowercase();
            }
        }
        String::new()
    }

    /// The text of a node in one line.
    pub(super) fn inline(&mut self, node: NodeId) -> String {
        let outer = std::mem::take(&mut self.line);
        let was_inline = std::mem::replace(&mut self.is_inline, true);
        self.children(node);
        self.is_inline = was_inline;
        let inner = std::mem::replace(&mut self.line, outer);
        let mut text = String::with_capacity(inner.len());
        push_collapsed(&mut text, &inner);
        text.trim_matches(is_space).to_owned()
    }

    fn table(&mut self, node: NodeId) {
        if self.is_inline {
            return self.children(node);
        }
        table::write(self, node);
    }
}

impl<'d> CellWriter<'d> for Writer<'d> {
    fn dom(&self) -> &'d Dom {
        self.dom
    }

    fn cell(&mut self, cell: NodeId) -> String {
        self.inline(cell).replace('|', "\\|")
    }

    fn table_line(&mut self, line: &str) {
        self.write_line(line);
    }

    fn around_table(&mut self) {
        self.block(Gap::Paragraph);
    }

    fn as_blocks(&mut self, cell: NodeId) {
        self.block(Gap::Paragraph);
        self.children(cell);
        self.block(Gap::Paragraph);
    }

    fn is_full(&self) -> bool {
        self.is_full || self.out.len() > self.most
    }
}
