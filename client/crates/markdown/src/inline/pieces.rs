//! Parts of a text as styled pieces.

use super::node::{Content, Emphases, Node};
use crate::{
    links::hyperlink,
    style::{Color, HARD_BREAK, Span, Style, push_text},
};

/// Puts the pieces together.
pub(super) fn assemble(nodes: Vec<Node<'_>>, base: &Style, hyperlinks: bool) -> Vec<Span> {
    let mut assembly =
        Assembly { spans: Vec::new(), base, hyperlinks, open: Emphases::default(), link: None };
    for node in nodes {
        assembly.open.add(node.before);
        assembly.add(node.content);
        assembly.open.add(node.after);
    }
    assembly.spans
}

impl Emphases {
    fn add(&mut self, other: Self) {
        self.bold += other.bold;
        self.italic += other.italic;
        self.strikethrough += other.strikethrough;
    }
}

/// The link that text is part of.
struct OpenLink {
    target: String,
    /// What was there before its text.
    spans: usize,
    bytes: usize,
}

struct Assembly<'a> {
    spans: Vec<Span>,
    base: &'a Style,
    hyperlinks: bool,
    open: Emphases,
    link: Option<OpenLink>,
}

impl Assembly<'_> {
    fn add(&mut self, content: Content<'_>) {
        match content {
            Content::Text(text) => self.push(text),
            Content::Char(c) => self.push(c.encode_utf8(&mut [0; 4])),
            Content::SoftBreak => self.push(" "),
            Content::HardBreak => self.spans.push(Span::new(HARD_BREAK, Style::default())),
            Content::Code(code) => {
                let style = self.style().with_code();
                push_text(&mut self.spans, &code, &style);
            }
            Content::Tag(tag) => {
                let style = Style { dim: true, ..self.style() };
                push_text(&mut self.spans, &tag.replace('\n', " "), &style);
            }
            // The run's marks are text by now.
            Content::Marks(marks) => self.push(marks.text),
            Content::Bracket { text, target: None } => self.push(text),
            Content::Bracket { target: Some(target), .. } => {
                let bytes = self.spans.last().map_or(0, |last| last.text.len());
                self.link = Some(OpenLink { target, spans: self.spans.len(), bytes });
            }
            Content::LinkEnd => self.end_link(),
            Content::Address { text, .. } if self.link.is_some() => self.push(text),
            Content::Address { text, target } => {
                let style = self.link_style(&target);
                push_text(&mut self.spans, text, &style);
            }
        }
    }

    fn push(&mut self, text: &str) {
        let style = match &self.link {
            Some(link) => self.link_style(&link.target),
            None => self.style(),
        };
        push_text(&mut self.spans, text, &style);
    }

    fn style(&self) -> Style {
        Style {
            bold: self.base.bold || self.open.bold > 0,
            italic: self.base.italic || self.open.italic > 0,
            strikethrough: self.base.strikethrough || self.open.strikethrough > 0,
            ..self.base.clone()
        }
    }

    fn link_style(&self, target: &str) -> Style {
        let link = self.hyperlinks.then(|| hyperlink(target)).flatten();
        Style { underline: true, color: Some(Color::Blue), link, ..self.style() }
    }

    /// Spells the target where it cannot be followed, and where the text pretends to be another.
    fn end_link(&mut self) {
        let Some(OpenLink { target, spans, bytes }) = self.link.take() else { return };
        let mut text = String::new();
        if let Some(span) = spans.checked_sub(1).and_then(|last| self.spans.get(last)) {
            text.push_str(&span.text[bytes..]);
        }
        text.extend(self.spans[spans..].iter().map(|span| span.text.as_str()));
        let is_same = text.trim() == target;
        let pretends = text.contains("://") || text.trim_start().starts_with("www.");
        let is_hyperlink = self.hyperlinks && hyperlink(&target).is_some();
        if target.is_empty() || is_same || (is_hyperlink && !pretends) {
            return;
        }
        let style = Style { dim: true, ..self.style() };
        let before = if text.trim().is_empty() { "" } else { " " };
        push_text(&mut self.spans, &format!("{before}({target})"), &style);
    }
}
