//! The only writer of the page; it takes text, never markup.
//!
//! Tags, attribute names and classes are literals of this crate. Everything else is escaped, so that no call can turn a
//! string of a transcript into an element or an attribute.

use std::io::{self, Write};

use agentd_protocol::{image_kind::ImageKind, message::ImageContent};
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::escape;

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

/// An address that a reader may be led to: `http`, `https` or `mailto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Href<'a>(&'a str);

impl<'a> Href<'a> {
    /// `None` for every other scheme, for relative targets, which lead nowhere from a file, and for what a browser would
    /// read otherwise than it looks.
    pub(crate) fn new(target: &'a str) -> Option<Self> {
        let (scheme, rest) = target.split_once(':')?;
        let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let leads_somewhere = scheme.eq_ignore_ascii_case("mailto") || rest.starts_with("//");
        let odd = |character: char| character.is_control() || character.is_whitespace() || character == '\\';
        (known && leads_somewhere && !target.contains(odd)).then_some(Self(target))
    }

    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }
}

/// An image that a page may show: its format is one that browsers show without running anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture<'a> {
    /// Determined from the content, whatever the transcript says.
    pub(crate) mime_type: &'static str,
    /// The bytes in base64, checked to be nothing else.
    pub(crate) data: &'a str,
    /// The length of the decoded image.
    pub(crate) bytes: usize,
}

impl<'a> Picture<'a> {
    /// `None` for anything but PNG, JPEG, GIF or WebP in base64.
    pub(crate) fn new(image: &'a ImageContent) -> Option<Self> {
        let data = image.data.as_str();
        let bytes = BASE64_STANDARD.decode(data).ok()?;
        let kind = ImageKind::by_signature(&bytes).filter(|kind| kind.is_for_the_web())?;
        Some(Self { mime_type: kind.mime_type(), data, bytes: bytes.len() })
    }
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

#[cfg(test)]
mod href_tests {
    use crate::page::*;

    #[test]
    fn only_the_web_and_mail() {
        for good in ["http://a", "HTTPS://a/b?c=d&e#f", "mailto:a@b.c", "https://ä.example/漢"] {
            assert_eq!(Href::new(good).map(Href::as_str), Some(good));
        }
        for bad in [
            "",
            "a",
            "src/main.rs",
            "#e1",
            "//host/x",
            "/etc/passwd",
            "javascript:alert(1)",
            "JaVaScRiPt:x",
            " javascript:x",
            "java\tscript:x",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "http:a",
            "http://a b",
            "http://a\nb",
            "https:\\\\a",
            "blob:http://a",
        ] {
            assert_eq!(Href::new(bad), None, "{bad:?}");
        }
    }
}

#[cfg(test)]
mod picture_tests {
    use crate::page::*;

    fn kind_of(bytes: &[u8], called: &str) -> Option<&'static str> {
        let image = ImageContent { data: BASE64_STANDARD.encode(bytes), mime_type: called.into() };
        let picture = Picture::new(&image)?;
        assert_eq!(picture.bytes, bytes.len());
        Some(picture.mime_type)
    }

    #[test]
    fn the_content_counts_not_the_name() {
        assert_eq!(kind_of(b"\x89PNG\r\n\x1a\nrest", "text/html"), Some("image/png"));
        assert_eq!(kind_of(b"\xff\xd8\xff\xe0", "image/png"), Some("image/jpeg"));
        assert_eq!(kind_of(b"GIF89a", ""), Some("image/gif"));
        assert_eq!(kind_of(b"RIFF\0\0\0\0WEBPVP8 ", ""), Some("image/webp"));
        assert_eq!(kind_of(b"<svg onload='alert(1)'>", "image/svg+xml"), None);
        assert_eq!(kind_of(b"", "image/png"), None);
    }

    #[test]
    fn only_base64_passes() {
        for data in ["iVBORw0KGgo\"><script>", "iVBORw0K\nGgo=", "%%%"] {
            let image = ImageContent { data: data.into(), mime_type: "image/png".into() };
            assert_eq!(Picture::new(&image), None, "{data}");
        }
    }
}
