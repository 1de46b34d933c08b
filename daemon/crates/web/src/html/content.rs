//! Which part of a page is its content. Measures every node once, and leaves out what surrounds the content: menus, sidebars, banners.

use std::collections::HashMap;

use reqwest::Url;

use super::{
    dom::{Dom, NodeId},
    tag::Tag,
};

/// Words in the ids and classes of what surrounds a content.
const SURROUNDING: [&str; 46] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "captcha",
    "consent",
    "cookie",
    "cookies",
    "disqus",
    "footer",
    "gdpr",
    "hidden",
    "masthead",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navbox",
    "navigation",
    "newsletter",
    "offcanvas",
    "pager",
    "pagination",
    "popup",
    "promo",
    "related",
    "respond",
    "share",
    "sharing",
    "sidebar",
    "sidenav",
    "skip",
    "social",
    "sponsor",
    "sponsored",
    "subscribe",
    "tocnav",
    "toolbar",
    "tooltip",
    "topbar",
    "widget",
    "mw-editsection",
    "headerlink",
];

/// Words of elements that hold a content, whatever else they are called.
const CONTENT: [&str; 10] =
    ["article", "body", "content", "entry", "main", "markdown", "post", "story", "text", "documentation"];

/// Roles of what surrounds a content.
const SURROUNDING_ROLES: [&str; 8] =
    ["navigation", "complementary", "contentinfo", "search", "banner", "dialog", "alertdialog", "menu"];

/// The least bytes of text of a content.
const LEAST: u32 = 200;

/// The links that are looked at for documents.
const MAX_LINKS: usize = 5;

/// The measures of a page's nodes.
pub(crate) struct Parts {
    /// Bytes of text below each node, without white space at ends and what is never shown.
    text: Vec<u32>,
    /// Of these, bytes in links.
    linked: Vec<u32>,
    /// How many links are below each node.
    links: Vec<u32>,
    /// Whether a node surrounds the content.
    surrounds: Vec<bool>,
    /// Whether the whole page is a list of links, so that lists of them are its content.
    is_index: bool,
}

impl Parts {
    /// Measures a page.
    pub(crate) fn of(dom: &Dom) -> Self {
        let count = dom.len();
        let mut parts = Self {
            text: vec![0; count],
            linked: vec![0; count],
            links: vec![0; count],
            surrounds: vec![false; count],
            is_index: false,
        };
        let order: Vec<NodeId> = dom.below(dom.root()).collect();
        // Pages use the same names again and again.
        let mut names = HashMap::new();
        for node in order.iter().rev() {
            let index = node.index();
            if let Some(text) = dom.text(*node) {
                parts.text[index] = u32::try_from(text.trim().len()).unwrap_or(u32::MAX);
            }
            let tag = dom.tag(*node);
            if tag == Some(Tag::A) {
                parts.linked[index] = parts.text[index];
                parts.links[index] += 1;
            }
            parts.surrounds[index] = parts.is_surrounding(dom, *node, &mut names);
            let Some(parent) = dom.parent(*node).map(NodeId::index) else { continue };
            if tag.is_some_and(Tag::is_silent) {
                continue;
            }
            parts.links[parent] += parts.links[index];
            if !parts.surrounds[index] {
                parts.text[parent] = parts.text[parent].saturating_add(parts.text[index]);
                parts.linked[parent] = parts.linked[parent].saturating_add(parts.linked[index]);
            }
        }
        let body = parts.body(dom).index();
        parts.is_index = parts.linked[body] > parts.text[body] / 2;
        parts
    }

    /// Whether an element surrounds the content, by its kind and what it is called.
    fn is_surrounding<'d>(&self, dom: &'d Dom, node: NodeId, names: &mut HashMap<&'d str, Named>) -> bool {
        let Some(tag) = dom.tag(node) else { return false };
        match tag {
            Tag::Html | Tag::Body | Tag::Main | Tag::Head | Tag::Tbody | Tag::Thead | Tag::Tr => {
                return false;
            }
            Tag::Nav | Tag::Footer | Tag::Button | Tag::Dialog => return true,
            // Beside an article, a remark; it may as well be all that a page says.
            Tag::Aside => return self.text[node.index()] < 4000,
            Tag::Article | Tag::Heading(_) | Tag::Code | Tag::Pre | Tag::P => return is_hidden(dom, node),
            _ => {}
        }
        if is_hidden(dom, node) {
            return true;
        }
        if dom.attribute(node, "role").is_some_and(|role| SURROUNDING_ROLES.contains(&role)) {
            return true;
        }
        let given = [dom.attribute(node, "id"), dom.attribute(node, "class")].into_iter().flatten();
        let named = given.map(|text| *names.entry(text).or_insert_with(|| named(text)));
        named.max() == Some(Named::Surrounding)
    }

    /// The body of the page, or all of it.
    pub(crate) fn body(&self, dom: &Dom) -> NodeId {
        dom.find(dom.root(), Tag::Body).unwrap_or(dom.root())
    }

    /// The part of the page that is its content.
    pub(crate) fn content(&self, dom: &Dom) -> NodeId {
        let body = self.body(dom);
        let whole = self.text[body.index()];
        let is_enough = |node: NodeId| {
            let text = self.text[node.index()];
            text >= LEAST.min(whole / 2) && text >= whole / 4
        };
        if let Some(marked) = self.marked(dom, body).filter(|node| is_enough(*node)) {
            return marked;
        }
        self.densest(dom, body).filter(|node| is_enough(*node)).unwrap_or(body)
    }

    /// The element that the page itself marks as its content: the longest of the kind that says it best.
    fn marked(&self, dom: &Dom, body: NodeId) -> Option<NodeId> {
        let mut best: [Option<NodeId>; 3] = [None; 3];
        let mut articles = 0;
        for node in dom.below(body) {
            let mut is_main = dom.tag(node) == Some(Tag::Main);
            let mut is_article = dom.tag(node) == Some(Tag::Article);
            let mut is_content = false;
            for (name, value) in dom.attributes(node) {
                match name {
                    "role" => is_main |= value == "main",
                    "itemprop" => is_article |= value == "articleBody",
                    "class" => {
                        is_article |= value
                            .split_whitespace()
                            .any(|name| matches!(name, "markdown-body" | "article-body" | "entry-content"));
                    }
                    "id" => {
                        is_content = matches!(value, "content" | "main" | "main-content" | "mw-content-text");
                    }
                    _ => {}
                }
            }
            articles += u32::from(is_article);
            for (place, is_one) in best.iter_mut().zip([is_article, is_main, is_content]) {
                if is_one && place.is_none_or(|known| self.text[node.index()] > self.text[known.index()]) {
                    *place = Some(node);
                }
            }
        }
        let [article, main, content] = best;
        // Several articles are a list of them, which the main part holds.
        let longest = article.map_or(0, |node| self.text[node.index()]);
        let around = main.or(content).map_or(0, |node| self.text[node.index()]);
        match article {
            Some(article) if articles == 1 || longest > around / 4 * 3 => Some(article),
            _ => main.or(content).or(article),
        }
    }

    /// The element around the paragraphs, where nothing is marked: each paragraph speaks for those above it.
    fn densest(&self, dom: &Dom, body: NodeId) -> Option<NodeId> {
        let mut scores = vec![0.0_f32; dom.len()];
        for node in dom.below(body) {
            let is_paragraph =
                matches!(dom.tag(node), Some(Tag::P | Tag::Pre | Tag::Blockquote | Tag::Td | Tag::Dd));
            let text = self.text[node.index()];
            if !is_paragraph
                || text < 25
                || self.density(node) > 0.5
                || self.is_within_surroundings(dom, node)
            {
                continue;
            }
            let score = 1.0 + (text as f32 / 100.0).min(4.0);
            for (above, share) in dom.ancestors(node).zip([1.0, 0.6, 0.3, 0.15]) {
                scores[above.index()] += score * share;
            }
        }
        let score = |node: &NodeId| scores[node.index()] * (1.0 - self.density(*node));
        let best = dom
            .below(body)
            .filter(|node| scores[node.index()] > 0.0)
            .max_by(|one, other| score(one).total_cmp(&score(other)))?;
        // What stands beside it and says something belongs to it: then the element around both is the content.
        let mut content = best;
        for above in dom.ancestors(best) {
            let (text, inner) = (self.text[above.index()], self.text[content.index()]);
            if text > inner + inner / 5 && self.density(above) > 0.5 {
                break;
            }
            content = above;
            if above == body {
                break;
            }
        }
        Some(content)
    }

    fn is_within_surroundings(&self, dom: &Dom, node: NodeId) -> bool {
        dom.ancestors(node).any(|above| self.surrounds[above.index()])
    }

    /// The share of a node's text that is in links.
    fn density(&self, node: NodeId) -> f32 {
        let text = self.text[node.index()];
        if text == 0 { 0.0 } else { self.linked[node.index()] as f32 / text as f32 }
    }

    /// Whether a node within the content is left out.
    pub(crate) fn is_left_out(&self, dom: &Dom, node: NodeId) -> bool {
        if self.surrounds[node.index()] {
            return true;
        }
        // A list of links within a text leads elsewhere.
        matches!(dom.tag(node), Some(Tag::Ul | Tag::Div | Tag::Section))
            && !self.is_index
            && self.links[node.index()] > 8
            && self.density(node) > 0.85
    }

    /// Documents that a content links to: texts and PDFs.
    pub(crate) fn document_links(&self, dom: &Dom, content: NodeId, base: &Url) -> Vec<Url> {
        let links = dom.below(content).filter(|node| dom.tag(*node) == Some(Tag::A));
        let urls = links.filter_map(|node| base.join(dom.attribute(node, "href")?).ok());
        let is_document = |url: &Url| {
            let path = url.path().to_ascii_lowercase();
            [".md", ".markdown", ".txt", ".pdf", ".rst"].iter().any(|ending| path.ends_with(ending))
        };
        urls.filter(|url| matches!(url.scheme(), "http" | "https") && is_document(url))
            .take(MAX_LINKS)
            .collect()
    }
}

/// What the id or the classes of an element say of it; the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Nothing,
    Surrounding,
    Content,
}

/// What names say: of several words in one name, the last that says something, as in `main-nav` and `sidebar-content`.
fn named(names: &str) -> Named {
    let of_word = |word: &str| {
        let is_one_of = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
        match (is_one_of(&CONTENT), is_one_of(&SURROUNDING)) {
            (true, _) => Some(Named::Content),
            (_, true) => Some(Named::Surrounding),
            _ => None,
        }
    };
    let of_name = |name: &str| of_word(name).or_else(|| name.rsplit(['-', '_']).find_map(of_word));
    names.split_whitespace().take(32).filter_map(of_name).max().unwrap_or(Named::Nothing)
}

/// Whether an element says that it is not shown.
fn is_hidden(dom: &Dom, node: NodeId) -> bool {
    dom.attributes(node).any(|(name, value)| match name {
        "hidden" => true,
        "aria-hidden" => value == "true",
        "style" => {
            let style: String = value.chars().filter(|letter| !letter.is_whitespace()).take(200).collect();
            style.contains("display:none") || style.contains("visibility:hidden")
        }
        "class" => value
            .split_whitespace()
            .any(|name| matches!(name, "sr-only" | "visually-hidden" | "screen-reader-text")),
        _ => false,
    })
}
