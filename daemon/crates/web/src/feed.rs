//! Feeds (RSS, Atom, JSON Feed) as Markdown. Reads any bytes; takes memory in proportion to what is shown.

use quick_xml::{Reader, events::Event};
use reqwest::Url;
use serde::Deserialize;

use crate::html;

/// Items of a feed that are shown.
const MAX_ITEMS: usize = 100;

/// Bytes of an item's text.
const MAX_ITEM: usize = 4000;

/// Bytes of a title, a date or an address.
const MAX_FIELD: usize = 2000;

/// Elements within each other that are followed.
const MAX_DEPTH: usize = 64;

/// A feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Feed {
    title: String,
    description: String,
    items: Vec<Item>,
    /// Whether it has more items than are shown.
    is_cut: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Item {
    title: String,
    link: String,
    date: String,
    author: String,
    /// As HTML or text.
    summary: String,
}

/// Whether a document looks like a feed of XML.
pub(crate) fn is_xml_feed(text: &str) -> bool {
    let start = &text[..text.floor_char_boundary(2000)];
    ["<rss", "<feed", "<rdf:RDF"].iter().any(|tag| {
        start.find(tag).is_some_and(|at| start[at + tag.len()..].starts_with([' ', '>', '\n', '\t', '\r']))
    })
}

/// The feed in a text of XML; `None` for what is none.
pub(crate) fn xml(text: &str) -> Option<Feed> {
    if !is_xml_feed(text) {
        return None;
    }
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let mut feed = Feed::default();
    let mut path: Vec<String> = Vec::new();
    let mut item: Option<Item> = None;
    let mut field = String::new();
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                let name = local(start.local_name().as_ref());
                // Markup within a text of Atom that is XHTML.
                if is_in_text(&path) && path.len() < MAX_DEPTH {
                    push(&mut field, &format!("<{name}>"), MAX_ITEM);
                } else {
                    if matches!(name.as_str(), "item" | "entry") {
                        item = Some(Item::default());
                    }
                    link(&start, &name, item.as_mut());
                    field.clear();
                }
                if path.len() < MAX_DEPTH {
                    path.push(name);
                }
            }
            Ok(Event::Empty(start)) => {
                let name = local(start.local_name().as_ref());
                if is_in_text(&path) {
                    push(&mut field, &format!("<{name}>"), MAX_ITEM);
                } else {
                    link(&start, &name, item.as_mut());
                }
            }
            Ok(Event::Text(piece)) => {
                push(&mut field, &piece, MAX_ITEM);
            }
            Ok(Event::CData(piece)) => push(&mut field, &piece, MAX_ITEM),
            Ok(Event::GeneralRef(name)) => push(&mut field, &entity(&name), MAX_ITEM),
            Ok(Event::End(_)) => {
                if depth > path.len() {
                    depth -= 1;
                    continue;
                }
                depth = depth.saturating_sub(1);
                let Some(name) = path.pop() else { continue };
                if is_in_text(&path) {
                    push(&mut field, &format!("</{name}>"), MAX_ITEM);
                    continue;
                }
                if matches!(name.as_str(), "item" | "entry") {
                    if let Some(done) = item.take() {
                        if feed.items.len() == MAX_ITEMS {
                            feed.is_cut = true;
                            break;
                        }
                        feed.items.push(done);
                    }
                    continue;
                }
                let above = path.last().map(String::as_str).unwrap_or_default();
                let text = std::mem::take(&mut field);
                match &mut item {
                    Some(item) => item.take(&name, above, text),
                    None => feed.take(&name, above, text),
                }
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Some(feed)
}

/// Whether what stands below these elements is a text that may have markup of its own.
fn is_in_text(path: &[String]) -> bool {
    path.iter().any(|name| matches!(name.as_str(), "summary" | "content" | "description" | "encoded"))
}

fn local(name: &str) -> String {
    name[..name.floor_char_boundary(64)].to_owned()
}

/// The character that an entity of XML stands for; one that is none of XML's own stays as it is written.
pub(crate) fn entity(name: &str) -> String {
    let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(number) => u32::from_str_radix(number, 16).ok(),
        None => number.parse().ok(),
    });
    match (name, number.and_then(char::from_u32)) {
        (_, Some(character)) => character.to_string(),
        ("lt", _) => "<".to_owned(),
        ("gt", _) => ">".to_owned(),
        ("amp", _) => "&".to_owned(),
        ("quot", _) => "\"".to_owned(),
        ("apos", _) => "'".to_owned(),
        _ => format!("&{name};"),
    }
}

fn push(to: &mut String, text: &str, most: usize) {
    if to.len() < most {
        to.push_str(&text[..text.floor_char_boundary(most - to.len())]);
    }
}

/// The link of Atom, which is an attribute.
fn link(start: &quick_xml::events::BytesStart<'_>, name: &str, item: Option<&mut Item>) {
    let (Some(item), "link") = (item, name) else { return };
    let attribute = |wanted: &str| {
        let found = start.attributes().with_checks(false).flatten().find(|it| it.key.as_ref() == wanted)?;
        Some(found.value.replace("&amp;", "&"))
    };
    let relation = attribute("rel").unwrap_or_else(|| "alternate".to_owned());
    if relation == "alternate"
        && item.link.is_empty()
        && let Some(href) = attribute("href")
    {
        push(&mut item.link, &href, MAX_FIELD);
    }
}

impl Item {
    fn take(&mut self, name: &str, above: &str, text: String) {
        if name == "name" && above == "author" && !self.author.is_empty() && self.author.len() < MAX_FIELD {
            return self.author.push_str(&format!(", {}", text.trim()));
        }
        let place = match name {
            "title" if above != "image" && above != "source" => &mut self.title,
            "link" => &mut self.link,
            "pubDate" | "published" | "date" => &mut self.date,
            "updated" if self.date.is_empty() => &mut self.date,
            "creator" | "author" if !text.trim().is_empty() => &mut self.author,
            "name" if above == "author" => &mut self.author,
            // The longer text wins.
            "description" | "summary" | "content" | "encoded" if text.len() > self.summary.len() => {
                &mut self.summary
            }
            _ => return,
        };
        if place.is_empty() || name == "encoded" || name == "content" || name == "description" {
            *place = text;
        }
    }
}

impl Feed {
    fn take(&mut self, name: &str, above: &str, text: String) {
        let is_own = matches!(above, "channel" | "feed");
        match name {
            "title" if is_own && self.title.is_empty() => self.title = text,
            "description" | "subtitle" if is_own && self.description.is_empty() => self.description = text,
            _ => {}
        }
    }

    /// The feed as Markdown. `url` is where it was found.
    pub(crate) fn markdown(&self, url: &Url) -> String {
        let mut out = format!("# {}\n", line(&self.title, "Feed"));
        let description = html::fragment(&self.description, url, MAX_FIELD);
        if !description.trim().is_empty() {
            out.push_str(&format!("\n{}\n", description.trim()));
        }
        for item in &self.items {
            let title = line(&item.title, "Untitled");
            out.push_str(&format!("\n## {title}\n\n"));
            let link = url.join(item.link.trim()).ok().filter(|_| !item.link.trim().is_empty());
            let facts = [
                link.map(String::from),
                Some(line(&item.date, "")).filter(|date| !date.is_empty()),
                Some(line(&item.author, ""))
                    .filter(|author| !author.is_empty())
                    .map(|author| format!("by {author}")),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            if !facts.is_empty() {
                out.push_str(&format!("{}\n", facts.join(" · ")));
            }
            let summary = html::fragment(&item.summary, url, MAX_ITEM);
            if !summary.trim().is_empty() {
                out.push_str(&format!("\n{}\n", summary.trim()));
            }
        }
        if self.items.is_empty() {
            out.push_str("\nThe feed has no items.\n");
        }
        if self.is_cut {
            out.push_str(&format!("\nThe feed has more than {MAX_ITEMS} items; the first are shown.\n"));
        }
        out
    }
}

/// A text in one line, without markup.
fn line(text: &str, otherwise: &str) -> String {
    let plain = if text.contains(['<', '&']) {
        match Url::parse("about:blank") {
            Ok(url) => html::fragment(text, &url, MAX_FIELD),
            Err(_) => text.to_owned(),
        }
    } else {
        text.to_owned()
    };
    let joined = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if joined.is_empty() { otherwise.to_owned() } else { joined }
}

/// A feed of JSON; `None` for other JSON.
pub(crate) fn json(text: &str) -> Option<Feed> {
    #[derive(Deserialize)]
    struct JsonFeed {
        version: String,
        #[serde(default)]
        title: String,
        #[serde(default)]
        description: String,
        #[serde(default)]
        items: Vec<JsonItem>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct JsonItem {
        title: String,
        url: String,
        date_published: String,
        content_html: String,
        content_text: String,
        summary: String,
    }
    if !text[..text.floor_char_boundary(2000)].contains("jsonfeed.org/version") {
        return None;
    }
    let JsonFeed { version, title, description, items } = serde_json::from_str(text).ok()?;
    if !version.contains("jsonfeed.org/version") {
        return None;
    }
    let is_cut = items.len() > MAX_ITEMS;
    let items = items.into_iter().take(MAX_ITEMS).map(|item| {
        let texts = [item.content_html, item.content_text, item.summary];
        let mut summary = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        summary.truncate(summary.floor_char_boundary(MAX_ITEM));
        Item { title: item.title, link: item.url, date: item.date_published, author: String::new(), summary }
    });
    Some(Feed { title, description, items: items.collect(), is_cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("https://example.org/feed/").unwrap()
    }

    #[test]
    fn rss_atom_and_json_are_read() {
        let rss = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>A &amp; B</title><description>All</description>\
                   <item><title>One</title><link>../one</link><pubDate>Mon, 01 Jan 2024</pubDate>\
                   <description><![CDATA[<p>Hello <b>you</b></p>]]></description></item>\
                   <item><title>Two</title><description>&lt;p&gt;Escaped&lt;/p&gt;</description></item></channel></rss>";
        let shown = xml(rss).unwrap().markdown(&url());
        assert_eq!(
            shown,
            "# A & B\n\nAll\n\n## One\n\nhttps://example.org/one · Mon, 01 Jan 2024\n\nHello **you**\n\n## Two\n\n\nEscaped\n"
        );
        let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>F</title><entry><title type=\"html\">E &lt;i&gt;x&lt;/i&gt;</title>\
                    <link rel=\"edit\" href=\"/edit\"/><link href=\"/e?a=1&amp;b=2\"/><updated>2024-01-01</updated>\
                    <author><name>N</name></author><content type=\"xhtml\"><div><p>In <em>XHTML</em></p></div></content></entry></feed>";
        let shown = xml(atom).unwrap().markdown(&url());
        assert!(
            shown.contains("## E *x*\n\nhttps://example.org/e?a=1&b=2 · 2024-01-01 · by N\n\nIn *XHTML*"),
            "{shown}"
        );
        let feed = r#"{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"title":"i","url":"/i","content_html":"<p>x"}]}"#;
        assert!(json(feed).unwrap().markdown(&url()).contains("## i\n\nhttps://example.org/i\n\nx"));
        assert_eq!(xml("<html><feedback>"), None);
        assert_eq!(json("{}"), None);
    }
}
