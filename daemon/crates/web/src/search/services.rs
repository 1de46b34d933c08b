//! The services with keys of their own: Brave, Tavily, Exa, SearXNG. Requests and answers are as their documentations have them.

use agentd_http::Secret;
use agentd_protocol::settings::WebSearchProvider;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::{
    arguments::SearchArguments,
    query::Query,
    response::{SearchResponse, Source},
};

/// The most results of a service.
const MAX_RESULTS: u64 = 20;

/// A request, without how it is sent.
pub(super) struct ServiceRequest {
    pub(super) url: Url,
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) body: Option<Value>,
}

/// The name of a service for people.
pub(super) fn name(service: WebSearchProvider) -> &'static str {
    match service {
        WebSearchProvider::Brave => "Brave",
        WebSearchProvider::Tavily => "Tavily",
        WebSearchProvider::Exa => "Exa",
        WebSearchProvider::Searxng => "SearXNG",
        WebSearchProvider::Vendor => "The model's vendor",
    }
}

/// Where a service is, unless the settings say otherwise.
pub(super) fn base_url(service: WebSearchProvider) -> Option<&'static str> {
    match service {
        WebSearchProvider::Brave => Some("https://api.search.brave.com/res/v1"),
        WebSearchProvider::Tavily => Some("https://api.tavily.com"),
        WebSearchProvider::Exa => Some("https://api.exa.ai"),
        WebSearchProvider::Searxng | WebSearchProvider::Vendor => None,
    }
}

/// The request to a service.
///
/// # Errors
/// A clause for the model, where the address cannot be used.
pub(super) fn request(
    service: WebSearchProvider,
    base: &str,
    key: Option<&Secret>,
    query: &Query,
    arguments: &SearchArguments,
) -> Result<ServiceRequest, String> {
    let at = |path: &str| {
        Url::parse(&format!("{}{path}", base.trim_end_matches('/')))
            .map_err(|_| "its address in the setting webSearch.baseUrls is none".to_owned())
    };
    let count = arguments.count().min(MAX_RESULTS);
    let secret = |start: &str, key: &Secret| Secret::new(format!("{start}{}", key.expose()));
    match service {
        WebSearchProvider::Brave => {
            let mut url = at("/web/search")?;
            {
                let mut pairs = url.query_pairs_mut();
                pairs
                    .append_pair("q", &query.whole)
                    .append_pair("count", &count.to_string())
                    .append_pair("extra_snippets", "true");
                if let Some(recency) = arguments.recency {
                    pairs.append_pair("freshness", recency.of_brave());
                }
            }
            let headers =
                key.map(|key| ("x-subscription-token".to_owned(), secret("", key))).into_iter().collect();
            Ok(ServiceRequest { url, headers, body: None })
        }
        WebSearchProvider::Searxng => {
            let mut url = at("/search")?;
            {
                let mut pairs = url.query_pairs_mut();
                pairs.append_pair("q", &query.whole).append_pair("format", "json");
                if let Some(recency) = arguments.recency {
                    pairs.append_pair("time_range", recency.of_searxng());
                }
            }
            // `user:password` is basic, anything else a token.
            let header = key.map(|key| match key.expose().contains(':') {
                true => secret("Basic ", &Secret::new(base64(key.expose()))),
                false => secret("Bearer ", key),
            });
            Ok(ServiceRequest {
                url,
                headers: header.map(|value| ("authorization".to_owned(), value)).into_iter().collect(),
                body: None,
            })
        }
        WebSearchProvider::Tavily => {
            let mut body = json!({"query": words(query), "max_results": count.max(5), "search_depth": "basic", "include_answer": true});
            set(&mut body, "time_range", arguments.recency.map(|recency| recency.name().into()));
            set(&mut body, "include_domains", list(&query.sites));
            set(&mut body, "exclude_domains", list(&query.not_sites));
            set(&mut body, "start_date", query.after.clone().map(Value::from));
            set(&mut body, "end_date", query.before.clone().map(Value::from));
            let headers =
                key.map(|key| ("authorization".to_owned(), secret("Bearer ", key))).into_iter().collect();
            Ok(ServiceRequest { url: at("/search")?, headers, body: Some(body) })
        }
        WebSearchProvider::Exa => {
            let mut body = json!({"query": words(query), "numResults": count, "type": "auto",
                                  "contents": {"text": {"maxCharacters": 1000}, "highlights": true}});
            set(&mut body, "includeDomains", list(&query.sites));
            set(&mut body, "excludeDomains", list(&query.not_sites));
            let since = arguments.recency.map(|recency| recency.since().to_string());
            set(&mut body, "startPublishedDate", query.after.clone().or(since).map(Value::from));
            set(&mut body, "endPublishedDate", query.before.clone().map(Value::from));
            let headers = key.map(|key| ("x-api-key".to_owned(), secret("", key))).into_iter().collect();
            Ok(ServiceRequest { url: at("/search")?, headers, body: Some(body) })
        }
        WebSearchProvider::Vendor => Err("it is asked as a model".to_owned()),
    }
}

/// The query for services that have no operators of their own.
fn words(query: &Query) -> &str {
    if query.words.is_empty() { &query.whole } else { &query.words }
}

fn set(body: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        body[key] = value;
    }
}

fn list(names: &[String]) -> Option<Value> {
    let hosts: Vec<&str> = names.iter().map(|name| name.split('/').next().unwrap_or(name)).collect();
    (!hosts.is_empty()).then(|| json!(hosts))
}

/// Base64 of a text, in the form of headers.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// What a service found.
pub(super) fn response(service: WebSearchProvider, answer: &Value) -> SearchResponse {
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).map(str::to_owned).filter(|text| !text.is_empty())
    };
    let results = match service {
        WebSearchProvider::Brave => answer.pointer("/web/results"),
        _ => answer.get("results"),
    };
    let results = results.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let sources = results.iter().filter_map(|result| {
        let snippet = match service {
            WebSearchProvider::Brave => {
                let first = text(result, "description").map(|snippet| plain(&snippet));
                let more =
                    texts(result.get("extra_snippets")).into_iter().next().map(|snippet| plain(&snippet));
                [first, more].into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
            WebSearchProvider::Exa => {
                let highlights = texts(result.get("highlights")).join(" … ");
                if highlights.is_empty() { text(result, "text").unwrap_or_default() } else { highlights }
            }
            _ => text(result, "content").unwrap_or_default(),
        };
        let url = text(result, "url")?;
        Some(Source {
            title: text(result, "title").map(|title| plain(&title)).unwrap_or_else(|| url.clone()),
            url,
            snippet: Some(snippet).filter(|snippet| !snippet.is_empty()),
            published_date: ["publishedDate", "published_date", "page_age", "pubdate"]
                .iter()
                .find_map(|key| text(result, key)),
            age_seconds: None,
            author: text(result, "author"),
        })
    });
    SearchResponse {
        provider: service.as_str().to_owned(),
        sources: sources.take(MAX_RESULTS as usize).collect(),
        answer: text(answer, "answer"),
        related_questions: texts(answer.get("suggestions")).into_iter().take(5).collect(),
        request_id: text(answer, "request_id").or_else(|| text(answer, "requestId")),
        ..SearchResponse::default()
    }
}

/// The texts of a list.
pub(super) fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A text without the markup that services put around what fits.
fn plain(text: &str) -> String {
    let mut out = text.to_owned();
    for (mark, letter) in [
        ("<strong>", ""),
        ("</strong>", ""),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        out = out.replace(mark, letter);
    }
    out
}

/// An object without its members that are absent.
pub(super) fn object(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_headers() {
        for (text, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("u:pä", "dTpww6Q=")]
        {
            assert_eq!(base64(text), expected);
        }
    }
}
