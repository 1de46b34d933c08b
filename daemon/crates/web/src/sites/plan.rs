//! What handlers are made of: what they look at, and what they make of it.

use reqwest::Url;
use serde_json::Value;

/// Bytes of a text in an answer of an interface.
const MAX_TEXT: usize = 400_000;

/// What a handler makes of a URL.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What the result says of how it was read.
    pub(crate) method: &'static str,
    pub(crate) form: Form,
}

/// The better form of a page.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// Another URL, which is read like any other page.
    Page(Url),
    /// Answers in JSON of an interface for programs, as Markdown. The first has to be there.
    Json(Vec<Url>, fn(&[Value]) -> Option<String>),
    /// A feed of an interface.
    Feed(Url),
    /// A text of an interface, with the header `Accept` that asks for it.
    Text(Url, &'static str),
}

/// The sites that have handlers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sites {
    /// Other places of hosts, for tests.
    #[cfg(test)]
    pub(crate) bases: Vec<(&'static str, String)>,
}

/// A URL that is looked at.
pub(super) struct Place<'a> {
    pub(super) host: &'a str,
    /// The parts of the path.
    pub(super) path: Vec<&'a str>,
}

impl Sites {
    /// The host of a URL.
    #[cfg(not(test))]
    pub(super) fn host_of(&self, url: &Url) -> String {
        url.host_str().unwrap_or_default().to_owned()
    }

    /// The host of a URL, or the one that it stands for.
    #[cfg(test)]
    pub(super) fn host_of(&self, url: &Url) -> String {
        let here = self.bases.iter().find(|(_, base)| url.as_str().starts_with(base.as_str()));
        here.map_or_else(|| url.host_str().unwrap_or_default().to_owned(), |(host, _)| (*host).to_owned())
    }

    /// A URL at a host.
    pub(super) fn at(&self, host: &str, path: &str) -> Option<Url> {
        #[cfg(test)]
        if let Some((_, base)) = self.bases.iter().find(|(known, _)| *known == host) {
            return Url::parse(&format!("{base}{path}")).ok();
        }
        Url::parse(&format!("https://{host}{path}")).ok()
    }
}

/// A text of a value, within bounds.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let text = value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().trim();
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// A line `- name: value`, where there is one.
pub(super) fn fact(out: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        out.push_str(&format!("- {name}: {}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
}
