//! What a page says of itself: its title, its base, other forms of it.

use reqwest::Url;

use super::{
    dom::{Dom, NodeId},
    tag::Tag,
};

/// Alternate forms that are looked at.
const MAX_ALTERNATES: usize = 16;

/// Bytes of a title.
const MAX_TITLE: usize = 300;

/// Bytes of what a page says to those without scripts.
const MAX_NOTE: usize = 500;

/// Another form of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alternate {
    pub(crate) kind: AlternateKind,
    pub(crate) url: Url,
}

/// The kind of another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlternateKind {
    Markdown,
    Feed,
}

/// What the head of a page says.
pub(super) struct Head {
    pub(super) title: String,
    pub(super) base: Option<Url>,
    pub(super) alternates: Vec<Alternate>,
    pub(super) without_scripts: String,
}

/// Reads the head of a page at `url`, and what else is in it that belongs there.
pub(super) fn read(dom: &Dom, url: &Url) -> Head {
    let mut head =
        Head { title: String::new(), base: None, alternates: Vec::new(), without_scripts: String::new() };
    let mut shared_title = None;
    for node in dom.below(dom.root()) {
        match dom.tag(node) {
            Some(Tag::Title) if head.title.is_empty() => head.title = dom.plain_text(node, MAX_TITLE),
            Some(Tag::Base) if head.base.is_none() => {
                head.base = dom
                    .attribute(node, "href")
                    .and_then(|href| url.join(href).ok())
                    .filter(|base| base.has_host());
            }
            Some(Tag::Link) if head.alternates.len() < MAX_ALTERNATES => {
                let base = head.base.as_ref().unwrap_or(url);
                head.alternates.extend(alternate(dom, node, base));
            }
            Some(Tag::Meta)
                if shared_title.is_none() && dom.attribute(node, "property") == Some("og:title") =>
            {
                shared_title = dom.attribute(node, "content");
            }
            Some(Tag::Noscript) if head.without_scripts.len() < MAX_NOTE => {
                head.without_scripts.push_str(&dom.plain_text(node, MAX_NOTE));
                head.without_scripts.push(' ');
            }
            _ => {}
        }
    }
    if head.title.is_empty()
        && let Some(title) = shared_title
    {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        head.title = title[..title.floor_char_boundary(MAX_TITLE)].to_owned();
    }
    head
}

fn alternate(dom: &Dom, link: NodeId, base: &Url) -> Option<Alternate> {
    let is_alternate =
        dom.attribute(link, "rel")?.split_whitespace().any(|rel| rel.eq_ignore_ascii_case("alternate"));
    let kind = dom.attribute(link, "type")?.trim().to_ascii_lowercase();
    let kind = match kind.split(';').next().unwrap_or_default().trim() {
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" => AlternateKind::Feed,
        kind if kind.ends_with("markdown") => AlternateKind::Markdown,
        _ => return None,
    };
    let url = base.join(dom.attribute(link, "href")?).ok()?;
    (is_alternate && matches!(url.scheme(), "http" | "https")).then_some(Alternate { kind, url })
}
