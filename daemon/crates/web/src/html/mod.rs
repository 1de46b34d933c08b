//! HTML as readable Markdown: the tree, the part of it that is the content, and its Markdown.
//!
//! Works on any text in bounded memory and time. Blocks for as long as that takes: some ten milliseconds for a page of a megabyte.

mod content;
mod dom;
mod head;
mod inline;
mod markdown;
mod marks;
mod quality;
mod table;
mod tag;
mod tokens;

use reqwest::Url;

pub(crate) use head::{Alternate, AlternateKind};
pub(crate) use quality::is_low;

use self::{dom::Dom, markdown::Writer};

/// Bytes of HTML that are parsed; the rest of a longer page is left out.
const MAX_HTML: usize = 16 << 20;

/// What is read from a page.
#[derive(Debug, Default)]
pub(crate) struct HtmlPage {
    /// The readable content as Markdown.
    pub(crate) markdown: String,
    /// Other forms of the page that it names itself.
    pub(crate) alternates: Vec<Alternate>,
    /// Documents that the content links to, in their order: candidates where the page itself says little.
    pub(crate) document_links: Vec<Url>,
    /// What the page says to those without scripts.
    pub(crate) without_scripts: String,
    /// Whether it was not read to its end.
    pub(crate) is_cut: bool,
}

/// Reads a page that was found at `url`. `most` is how many bytes of Markdown are made.
pub(crate) fn read(html: &str, url: &Url, most: usize) -> HtmlPage {
    let shown = &html[..html.floor_char_boundary(MAX_HTML)];
    let dom = Dom::parse(shown);
    let head = head::read(&dom, url);
    let base = head.base.as_ref().unwrap_or(url);
    let parts = content::Parts::of(&dom);
    let root = parts.content(&dom);
    let mut writer = Writer::new(&dom, base, &parts, most);
    writer.content(root);
    let (mut markdown, is_full) = writer.finish();
    // Where the choice left next to nothing of a page that has something, all of it is shown.
    if markdown.len() < 200 {
        let mut writer = Writer::unpruned(&dom, base, &parts, most);
        writer.content(parts.body(&dom));
        let (whole, _) = writer.finish();
        if whole.len() > 2 * markdown.len() {
            markdown = whole;
        }
    }
    if !head.title.is_empty() && !markdown.lines().any(|line| line.starts_with("# ")) && !markdown.is_empty()
    {
        markdown = format!("# {}\n\n{markdown}", head.title);
    }
    HtmlPage {
        document_links: parts.document_links(&dom, root, base),
        markdown,
        alternates: head.alternates,
        without_scripts: head.without_scripts,
        is_cut: dom.is_cut || shown.len() < html.len() || is_full,
    }
}

/// A piece of HTML, such as a description in a feed, as Markdown.
pub(crate) fn fragment(html: &str, url: &Url, most: usize) -> String {
    let dom = Dom::parse(&html[..html.floor_char_boundary(MAX_HTML)]);
    let parts = content::Parts::of(&dom);
    let mut writer = Writer::unpruned(&dom, url, &parts, most);
    writer.content(dom.root());
    writer.finish().0
}

#[cfg(test)]
mod tests;
