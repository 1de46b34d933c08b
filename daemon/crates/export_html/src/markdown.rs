//! Text of a model in Markdown, as elements of the page.
//!
//! HTML in it is shown as the text that it is. Images are links: nothing is loaded.

use std::io;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::page::{Attr, Href, Page};

/// Longer texts are data, and shown as they are.
const LONGEST: usize = 1 << 20;

/// Deeper lists and quotes are shown without their own indentation: browsers give up at a few hundred levels.
const DEEPEST: usize = 24;

/// Writes a text as what its Markdown means.
pub(crate) fn write(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    if text.len() > LONGEST {
        return page.preformatted("plain", text);
    }
    page.open("div", &[Attr::Class("md")])?;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut body = Body::default();
    for event in Parser::new_ext(text, options) {
        body.event(page, event)?;
    }
    page.close("div")?;
    page.ours("\n")
}

/// The elements that are open.
#[derive(Default)]
struct Body {
    /// What closes each, innermost last; `None` for what has no element here.
    open: Vec<Option<&'static str>>,
    /// How many of them have an element.
    depth: usize,
    in_table_head: bool,
}

impl Body {
    fn event(&mut self, page: &mut Page<'_>, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(page, &tag),
            Event::End(end) => self.end(page, end),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => page.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                page.words("code", &[], &text)
            }
            Event::SoftBreak => page.ours("\n"),
            Event::HardBreak => page.ours("<br>\n"),
            Event::Rule => page.ours("<hr>\n"),
            Event::FootnoteReference(name) => {
                page.text("[^")?;
                page.text(&name)?;
                page.text("]")
            }
            Event::TaskListMarker(done) => page.text(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, page: &mut Page<'_>, tag: &Tag<'_>) -> io::Result<()> {
        match tag {
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                let title = [Attr::Class("code"), Attr::Title(language)];
                self.push(page, "pre", if language.is_empty() { &title[..1] } else { &title })?;
                return page.ours("\n");
            }
            // Text of blocks keeps its line breaks.
            Tag::HtmlBlock => return self.push(page, "p", &[Attr::Class("html")]),
            Tag::Link { dest_url, .. } => return self.link(page, dest_url),
            Tag::Image { dest_url, .. } => {
                self.link(page, dest_url)?;
                return page.text("Image: ");
            }
            Tag::List(Some(first)) => return self.push(page, "ol", &[Attr::Number("start", *first)]),
            Tag::TableHead => {
                self.in_table_head = true;
                return self.push(page, "tr", &[]);
            }
            _ => {}
        }
        match self.element(tag) {
            Some(element) => self.push(page, element, &[]),
            None => {
                self.open.push(None);
                Ok(())
            }
        }
    }

    /// The element of a tag that needs no attributes.
    fn element(&self, tag: &Tag<'_>) -> Option<&'static str> {
        Some(match tag {
            Tag::Paragraph => "p",
            // The page's own headings use the first two levels.
            Tag::Heading { level, .. } => match level {
                HeadingLevel::H1 => "h3",
                HeadingLevel::H2 => "h4",
                HeadingLevel::H3 => "h5",
                HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h6",
            },
            Tag::BlockQuote(_) => "blockquote",
            Tag::List(_) => "ul",
            Tag::Item => "li",
            Tag::Table(_) => "table",
            Tag::TableRow => "tr",
            Tag::TableCell if self.in_table_head => "th",
            Tag::TableCell => "td",
            Tag::Emphasis => "em",
            Tag::Strong => "strong",
            Tag::Strikethrough => "s",
            _ => return None,
        })
    }

    fn link(&mut self, page: &mut Page<'_>, target: &str) -> io::Result<()> {
        match Href::new(target) {
            Some(href) => self.push(page, "a", &[Attr::Link(href)]),
            // Show the target even though it is no link.
            None => self.push(page, "span", &[Attr::Class("target"), Attr::Title(target)]),
        }
    }

    fn push(
        &mut self,
        page: &mut Page<'_>,
        element: &'static str,
        attributes: &[Attr<'_>],
    ) -> io::Result<()> {
        if self.depth >= DEEPEST {
            self.open.push(None);
            return Ok(());
        }
        self.depth += 1;
        self.open.push(Some(element));
        page.open(element, attributes)
    }

    fn end(&mut self, page: &mut Page<'_>, end: TagEnd) -> io::Result<()> {
        if end == TagEnd::TableHead {
            self.in_table_head = false;
        }
        let Some(Some(element)) = self.open.pop() else { return Ok(()) };
        self.depth -= 1;
        page.close(element)?;
        match element {
            "em" | "strong" | "s" | "a" | "span" => Ok(()),
            _ => page.ours("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::written;

    fn check(markdown: &str, expected: &str) {
        let html = written(|page| write(page, markdown));
        assert_eq!(html, format!("<div class=\"md\">{expected}</div>\n"), "{markdown}");
    }

    #[test]
    fn blocks_and_spans() {
        check(
            "# A\n\nb *c* **d** ~~e~~ `f<`",
            "<h3>A</h3>\n<p>b <em>c</em> <strong>d</strong> <s>e</s> <code>f&lt;</code></p>\n",
        );
        check("3. a\n4. b", "<ol start=\"3\"><li>a</li>\n<li>b</li>\n</ol>\n");
        check("- [x] a\n- [ ] b", "<ul><li>☑ a</li>\n<li>☐ b</li>\n</ul>\n");
        check("> a", "<blockquote><p>a</p>\n</blockquote>\n");
        check(
            "```rust extra\nfn a<T>() {}\n```",
            "<pre class=\"code\" title=\"rust\">\nfn a&lt;T&gt;() {}\n</pre>\n",
        );
        check(
            "|a|b|\n|-|-|\n|c|d|",
            "<table><tr><th>a</th>\n<th>b</th>\n</tr>\n<tr><td>c</td>\n<td>d</td>\n</tr>\n</table>\n",
        );
    }

    #[test]
    fn html_is_text() {
        check(
            "<script>alert(1)</script>\n",
            "<p class=\"html\">&lt;script&gt;alert(1)&lt;/script&gt;\n</p>\n",
        );
        check("a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n");
    }

    #[test]
    fn only_safe_targets_are_links() {
        let rel = "target=\"_blank\" rel=\"noopener noreferrer\"";
        check("[a](https://b/?\"c)", &format!("<p><a href=\"https://b/?&quot;c\" {rel}>a</a></p>\n"));
        check(
            "[a](javascript:alert(1))",
            "<p><span class=\"target\" title=\"javascript:alert(1)\">a</span></p>\n",
        );
        check("[a](src/main.rs)", "<p><span class=\"target\" title=\"src/main.rs\">a</span></p>\n");
        check(
            "![cat](https://b/c.png)",
            &format!("<p><a href=\"https://b/c.png\" {rel}>Image: cat</a></p>\n"),
        );
    }

    #[test]
    fn depth_is_bounded() {
        let html = written(|page| write(page, &format!("{}deep", "> ".repeat(2000))));
        assert_eq!(html.matches("<blockquote>").count(), DEEPEST);
        assert_eq!(html.matches("</blockquote>").count(), DEEPEST);
        assert!(html.contains("deep"));
    }

    proptest! {
        #[test]
        fn elements_are_closed_in_order(markdown in "([*_`~#>|\\-\\[\\]()!<a\n 1.]|https://a|<b>){0,60}") {
            let html = written(|page| write(page, &markdown));
            crate::testing::check_balanced(&html);
        }
    }
}
