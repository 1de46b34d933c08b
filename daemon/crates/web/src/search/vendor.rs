//! The searches of models' vendors: a request to the session's model with the vendor's own tool, by the session's key and address.

use agentd_http::{Credentials, Secret};
use reqwest::Url;
use serde_json::{Value, json};

use super::{
    arguments::SearchArguments,
    response::{Citation, SearchResponse, Source},
    services::{ServiceRequest, object, texts},
};

/// Tokens of the answer, unless the call says otherwise.
const MAX_TOKENS: u64 = 4096;

/// How often a model may search for one call.
const MAX_SEARCHES: u64 = 3;

/// Sources of one answer.
const MAX_SOURCES: usize = 20;

/// A vendor whose models can search by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorKind {
    /// Anthropic, by its tool `web_search`.
    Anthropic,
    /// Google, by grounding.
    Gemini,
    /// OpenAI, by its tool `web_search`.
    OpenAi,
}

impl VendorKind {
    /// The vendor of models of a provider that speak an API; `None` for others.
    #[must_use]
    pub fn of(provider: &str, api: &str) -> Option<Self> {
        match (provider, api) {
            ("anthropic", "anthropic-messages") => Some(Self::Anthropic),
            ("google", "google-generative-ai") => Some(Self::Gemini),
            ("openai", "openai-responses") => Some(Self::OpenAi),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
        }
    }
}

/// The session's model, as a service that searches.
#[derive(Debug, Clone)]
pub struct Vendor {
    /// The vendor.
    pub kind: VendorKind,
    /// The model's id.
    pub model: String,
    /// Where its requests go.
    pub base_url: String,
    /// The session's credentials for it.
    pub credentials: Credentials,
}

/// The request to a vendor.
///
/// # Errors
/// A clause for the model, where the address or the key cannot be used.
pub(super) fn request(vendor: &Vendor, arguments: &SearchArguments) -> Result<ServiceRequest, String> {
    let base = vendor.base_url.trim_end_matches('/');
    let (path, body) = match vendor.kind {
        VendorKind::Anthropic => ("/v1/messages".to_owned(), anthropic(vendor, arguments)),
        VendorKind::Gemini => (format!("/models/{}:generateContent", vendor.model), gemini(arguments)),
        VendorKind::OpenAi => ("/responses".to_owned(), openai(vendor, arguments)),
    };
    // Some addresses have the version in them already.
    let path = if base.ends_with("/v1") { path.trim_start_matches("/v1").to_owned() } else { path };
    let url = Url::parse(&format!("{base}{path}"))
        .map_err(|_| "the address of the model's provider is none".to_owned())?;
    let mut headers: Vec<(String, Secret)> = Vec::new();
    if let Some(key) = vendor.credentials.key() {
        let (name, value) = match vendor.kind {
            VendorKind::Anthropic => ("x-api-key", key.to_owned()),
            VendorKind::Gemini => ("x-goog-api-key", key.to_owned()),
            VendorKind::OpenAi => ("authorization", format!("Bearer {key}")),
        };
        headers.push((name.to_owned(), Secret::new(value)));
    }
    if vendor.kind == VendorKind::Anthropic {
        headers.push(("anthropic-version".to_owned(), Secret::new("2023-06-01")));
    }
    for (name, value) in &vendor.credentials.headers {
        // Those of the configuration win; an empty one takes ours away.
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if !value.expose().is_empty() {
            headers.push((name.clone(), value.clone()));
        }
    }
    Ok(ServiceRequest { url, headers, body: Some(body) })
}

/// What the model is asked.
fn prompt(arguments: &SearchArguments) -> String {
    let recency = match arguments.recency {
        Some(recency) => format!(" Only what was published within the last {} counts.", recency.name()),
        None => String::new(),
    };
    format!(
        "Search the web for the following, and answer in a few paragraphs with the facts that you found.{recency}\n\n{}",
        arguments.query
    )
}

fn anthropic(vendor: &Vendor, arguments: &SearchArguments) -> Value {
    let body = object([
        ("model", Some(vendor.model.clone().into())),
        ("max_tokens", Some(arguments.max_tokens.unwrap_or(MAX_TOKENS).into())),
        ("temperature", arguments.temperature.map(Value::from)),
        ("messages", Some(json!([{"role": "user", "content": prompt(arguments)}]))),
        (
            "tools",
            Some(json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": MAX_SEARCHES}])),
        ),
    ]);
    Value::Object(body)
}

fn gemini(arguments: &SearchArguments) -> Value {
    let config = object([
        ("maxOutputTokens", arguments.max_tokens.map(Value::from)),
        ("temperature", arguments.temperature.map(Value::from)),
    ]);
    json!({
        "contents": [{"role": "user", "parts": [{"text": prompt(arguments)}]}],
        "tools": [{"google_search": {}}],
        "generationConfig": config,
    })
}

fn openai(vendor: &Vendor, arguments: &SearchArguments) -> Value {
    let body = object([
        ("model", Some(vendor.model.clone().into())),
        ("input", Some(prompt(arguments).into())),
        ("max_output_tokens", arguments.max_tokens.map(Value::from)),
        ("temperature", arguments.temperature.map(Value::from)),
        ("tools", Some(json!([{"type": "web_search"}]))),
        ("store", Some(false.into())),
    ]);
    Value::Object(body)
}

/// What a vendor found.
pub(super) fn response(vendor: &Vendor, answer: &Value) -> SearchResponse {
    let mut response = SearchResponse {
        provider: vendor.kind.name().to_owned(),
        model: Some(vendor.model.clone()),
        request_id: answer
            .get("id")
            .or_else(|| answer.get("responseId"))
            .and_then(Value::as_str)
            .map(str::to_owned),
        usage: answer.get("usage").or_else(|| answer.get("usageMetadata")).cloned(),
        ..SearchResponse::default()
    };
    let mut text = String::new();
    match vendor.kind {
        VendorKind::Anthropic => of_anthropic(answer, &mut text, &mut response),
        VendorKind::Gemini => of_gemini(answer, &mut text, &mut response),
        VendorKind::OpenAi => of_openai(answer, &mut text, &mut response),
    }
    for citation in &response.citations {
        if response.sources.len() < MAX_SOURCES
            && !response.sources.iter().any(|source| source.url == citation.url)
        {
            response.sources.push(Source {
                title: citation.title.clone(),
                url: citation.url.clone(),
                ..Source::default()
            });
        }
    }
    response.sources.truncate(MAX_SOURCES);
    response.citations.truncate(MAX_SOURCES);
    response.answer = Some(text).filter(|text| !text.trim().is_empty());
    response
}

fn items<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn string(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn of_anthropic(answer: &Value, text: &mut String, response: &mut SearchResponse) {
    for block in items(answer, "/content") {
        match string(block, "/type").as_str() {
            "text" => {
                text.push_str(&string(block, "/text"));
                response.citations.extend(items(block, "/citations").iter().map(|citation| Citation {
                    url: string(citation, "/url"),
                    title: string(citation, "/title"),
                    cited_text: Some(string(citation, "/cited_text")).filter(|cited| !cited.is_empty()),
                }));
            }
            "server_tool_use" => response.search_queries.push(string(block, "/input/query")),
            "web_search_tool_result" => {
                response.sources.extend(items(block, "/content").iter().map(|result| Source {
                    title: string(result, "/title"),
                    url: string(result, "/url"),
                    published_date: Some(string(result, "/page_age")).filter(|age| !age.is_empty()),
                    ..Source::default()
                }));
            }
            _ => {}
        }
    }
    response.sources.retain(|source| !source.url.is_empty());
}

fn of_gemini(answer: &Value, text: &mut String, response: &mut SearchResponse) {
    for part in items(answer, "/candidates/0/content/parts") {
        text.push_str(&string(part, "/text"));
    }
    response.search_queries = texts(answer.pointer("/candidates/0/groundingMetadata/webSearchQueries"));
    let chunks = items(answer, "/candidates/0/groundingMetadata/groundingChunks");
    response.sources = chunks
        .iter()
        .map(|chunk| Source {
            title: string(chunk, "/web/title"),
            url: string(chunk, "/web/uri"),
            ..Source::default()
        })
        .filter(|source| !source.url.is_empty())
        .collect();
    for support in items(answer, "/candidates/0/groundingMetadata/groundingSupports") {
        for index in items(support, "/groundingChunkIndices").iter().filter_map(Value::as_u64) {
            let Some(chunk) = usize::try_from(index).ok().and_then(|index| chunks.get(index)) else {
                continue;
            };
            response.citations.push(Citation {
                url: string(chunk, "/web/uri"),
                title: string(chunk, "/web/title"),
                cited_text: Some(string(support, "/segment/text")).filter(|cited| !cited.is_empty()),
            });
        }
    }
}

fn of_openai(answer: &Value, text: &mut String, response: &mut SearchResponse) {
    for item in items(answer, "/output") {
        if string(item, "/type") == "web_search_call" {
            let query = string(item, "/action/query");
            if !query.is_empty() {
                response.search_queries.push(query);
            }
        }
        for part in items(item, "/content") {
            text.push_str(&string(part, "/text"));
            response.citations.extend(
                items(part, "/annotations")
                    .iter()
                    .filter(|note| string(note, "/type") == "url_citation")
                    .map(|note| Citation {
                        url: string(note, "/url"),
                        title: string(note, "/title"),
                        cited_text: None,
                    }),
            );
        }
    }
}
