//! The only writer of the page; it takes text, never markup.
//!
//! Tags, attribute names and classes are literals of this crate. Everything else is escaped, so that no call can turn a
//! string of a transcript into an element or an attribute.

use std::io::{self, Write};

use crate::{escape, href::Href, picture::Picture};

/// The anchor of an entry: its number in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor(pub(crate) u32);

/// An attribute. The list is closed: none of them runs anything or loads from a network.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attr<'a> {
    Class(&'static str),
    /// `id` of a part of the page.
    Id(&'static str),
    /// `id` of an entry.
    Anchor(Anchor),
    /// A link to an entry of the page.
    To(Anchor),
    /// `id` of a piece of the conversation, by its index on the page.
    Piece(usize),
    /// A link to a piece.
    ToPiece(usize),
    /// A link to another site.
    Link(Href<'a>),
    /// The text shown while the pointer rests on the element.
    Title(&'a str),
    /// A name for screen readers.
    Label(&'static str),
    /// `alt` of an image.
    Alt(&'a str),
    /// `src` of an image.
    Source(Picture<'a>),
    /// `datetime`.
    Time(&'a str),
    /// An attribute with a constant value.
    Fixed(&'static str, &'static str),
    /// An attribute with a number as its value.
    Number(&'static str, u64),
}

/// A page that is being written. Nothing of it is kept.
pub(crate) struct Page<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Page<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Writes constant markup of this crate: the document type, styles, scripts.
    pub(crate) fn ours(&mut self, markup: &'static str) -> io::Result<()> {
        self.out.write_all(markup.as_bytes())
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        escape::write(self.out, text)
    }

    /// Begins an element. Prefer [`Self::element`] where the end is known.
    pub(crate) fn open(&mut self, tag: &'static str, attributes: &[Attr<'_>]) -> io::Result<()> {
        self.ours("<")?;
        self.ours(tag)?;
        for attribute in attributes {
            self.attribute(attribute)?;
        }
        self.ours(">")
    }

    pub(crate) fn close(&mut self, tag: &'static str) -> io::Result<()> {
        self.ours("</")?;
        self.ours(tag)?;
        self.ours(">")
    }

    /// An element and what is in it.
    pub(crate) fn element(
        &mut self,
        tag: &'static str,
        attributes: &[Attr<'_>],
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.open(tag, attributes)?;
        content(self)?;
        self.close(tag)
    }

    /// An element with only text.
    pub(crate) fn words(&mut self, tag: &'static str, attributes: &[Attr<'_>], text: &str) -> io::Result<()> {
        self.element(tag, attributes, |page| page.text(text))
    }

    /// Text with significant spaces and line breaks.
    pub(crate) fn preformatted(&mut self, class: &'static str, text: &str) -> io::Result<()> {
        self.element("pre", &[Attr::Class(class)], |page| {
            // A browser drops a line break right behind the tag, which may be the text's own.
            page.ours("\n")?;
            page.text(text)
        })
    }

    /// A folded element, with a summary line.
    pub(crate) fn folded(
        &mut self,
        attributes: &[Attr<'_>],
        summary: impl FnOnce(&mut Self) -> io::Result<()>,
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.element("details", attributes, |page| {
            page.element("summary", &[], summary)?;
            page.element("div", &[Attr::Class("in")], content)
        })?;
        self.ours("\n")
    }

    fn attribute(&mut self, attribute: &Attr<'_>) -> io::Result<()> {
        match attribute {
            Attr::Class(class) => self.fixed("class", class),
            Attr::Id(id) => self.fixed("id", id),
            Attr::Fixed(name, value) => self.fixed(name, value),
            Attr::Label(label) => self.fixed("aria-label", label),
            Attr::Anchor(Anchor(at)) => write!(self.out, " id=\"e{at}\""),
            Attr::To(Anchor(at)) => write!(self.out, " href=\"#e{at}\""),
            Attr::Piece(at) => write!(self.out, " id=\"p{at}\""),
            Attr::ToPiece(at) => write!(self.out, " href=\"#p{at}\""),
            Attr::Link(href) => {
                self.value("href", href.as_str())?;
                self.ours(" target=\"_blank\" rel=\"noopener noreferrer\"")
            }
            Attr::Title(text) => self.value("title", text),
            Attr::Alt(text) => self.value("alt", text),
            Attr::Time(text) => self.value("datetime", text),
            Attr::Source(Picture { mime_type, data, .. }) => {
                write!(self.out, " src=\"data:{mime_type};base64,")?;
                escape::write(self.out, data)?;
                self.ours("\"")
            }
            Attr::Number(name, value) => write!(self.out, " {name}=\"{value}\""),
        }
    }

    fn fixed(&mut self, name: &'static str, value: &'static str) -> io::Result<()> {
        write!(self.out, " {name}=\"{value}\"")
    }

    fn value(&mut self, name: &'static str, value: &str) -> io::Result<()> {
        self.ours(" ")?;
        self.ours(name)?;
        self.ours("=\"")?;
        escape::write(self.out, value)?;
        self.ours("\"")
    }
}

/// The text that a function writes.
#[cfg(test)]
pub(crate) fn written(content: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    content(&mut Page::new(&mut out)).unwrap();
    String::from_utf8(out).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_wherever_they_stand() {
        let evil = "\"><script>'&";
        let shown = "&quot;&gt;&lt;script&gt;&#39;&amp;";
        let page = written(|page| {
            page.element("a", &[Attr::To(Anchor(7)), Attr::Title(evil)], |page| page.text(evil))
        });
        assert_eq!(page, format!("<a href=\"#e7\" title=\"{shown}\">{shown}</a>"));
        let href = Href::new("https://a/\"'<>&").unwrap();
        assert_eq!(
            written(|page| page.words("a", &[Attr::Link(href)], "x")),
            "<a href=\"https://a/&quot;&#39;&lt;&gt;&amp;\" target=\"_blank\" rel=\"noopener noreferrer\">x</a>"
        );
    }

    #[test]
    fn preformatted_text_keeps_its_first_line_break() {
        assert_eq!(written(|page| page.preformatted("x", "\na")), "<pre class=\"x\">\n\na</pre>");
    }
}
