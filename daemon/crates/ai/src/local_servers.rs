//! Finds model servers on this machine by their model listings on the usual ports.
//!
//! Sends only `GET …/models`, and only when the caller asks.

use std::time::Duration;

use futures::future::join_all;
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;

use crate::http::HttpClients;

/// The default ports of model servers, each with the server that probably uses it.
pub const DEFAULT_PORTS: &[(u16, &str)] = &[
    (11434, "Ollama"),
    (1234, "LM Studio"),
    (8080, "llama.cpp"),
    (8000, "vLLM"),
    (18080, "llama.cpp"),
    (4000, "LiteLLM"),
    (5001, "KoboldCpp"),
    (30000, "SGLang"),
    (1337, "Jan"),
];

/// The timeout of a default port. A listing is ready at once; only a busy machine needs longer.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The timeout of a server that the user named, which can be far away.
const NAMED_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest listing, in bytes.
const MAX_LISTING_BYTES: usize = 1024 * 1024;

/// A server that lists models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The address of requests, without a slash at the end.
    pub base_url: String,
    /// The server's probable name, by its port.
    pub name: Option<&'static str>,
    /// Its models in its own order, each once. May be empty.
    pub models: Vec<LocalModel>,
}

/// A model as a listing describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    /// The id.
    pub id: String,
    /// The size of the context window in tokens, if the listing has it.
    pub context_window: Option<u64>,
    /// Whether the model accepts images, according to the listing.
    pub sees_images: bool,
}

impl LocalModel {
    /// Whether the model makes embeddings, judged by its id.
    #[must_use]
    pub fn is_embedding(&self) -> bool {
        self.id.to_ascii_lowercase().contains("embed")
    }
}

/// The reason why an address gave no listing.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No request can go there.
    #[error("{url} cannot be used as the address of a model server: {why}")]
    Address {
        /// The address, without a password.
        url: String,
        /// The problem.
        why: &'static str,
    },
    /// Nothing answers.
    #[error("nothing answers at {url}: {cause}")]
    Unreachable {
        /// The requested address.
        url: String,
        /// Why.
        cause: String,
    },
    /// A server listens but does not answer in time.
    #[error("{url} did not answer within {} ms", timeout.as_millis())]
    Silent {
        /// The requested address.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The server requires a key.
    #[error("{url} wants a key ({status})")]
    NeedsKey {
        /// The requested address.
        url: String,
        /// The status.
        status: u16,
    },
    /// Another answer than a listing.
    #[error("{url} is no model listing: {what}")]
    NotAListing {
        /// The requested address.
        url: String,
        /// The answer in place of a listing.
        what: String,
    },
}

/// Probes all [`DEFAULT_PORTS`] of 127.0.0.1 at once. Servers come in the order of the table; ports without a listing are left out.
///
/// Takes no longer than [`PROBE_TIMEOUT`]. Cancel safety: dropping it closes the connections.
pub async fn probe() -> Vec<LocalServer> {
    let answers = probe_loopback(&default_base_urls()).await.into_iter();
    answers
        .filter_map(|answer| match answer {
            Ok(server) => Some(server),
            Err(error) => {
                tracing::debug!(%error, "no model server");
                None
            }
        })
        .collect()
}

/// The addresses that [`probe`] asks.
#[must_use]
pub fn default_base_urls() -> Vec<String> {
    DEFAULT_PORTS.iter().map(|(port, _)| format!("http://127.0.0.1:{port}/v1")).collect()
}

/// Probes servers on this machine, all at once; an address of another machine is an error. The results are in the order of the addresses.
///
/// Takes no longer than [`PROBE_TIMEOUT`]. Cancel safety: dropping it closes the connections.
pub async fn probe_loopback(base_urls: &[String]) -> Vec<Result<LocalServer, ProbeError>> {
    let clients = HttpClients::default();
    let asked = base_urls.iter().map(|base_url| async {
        let url = parse(base_url)?;
        if !crate::http::is_loopback(&url) {
            let why = "it is not on this machine";
            return Err(ProbeError::Address { url: text(&url), why });
        }
        ask(&clients, &url, PROBE_TIMEOUT).await
    });
    join_all(asked).await
}

/// Whether an address is one of this machine.
#[must_use]
pub fn is_loopback(base_url: &str) -> bool {
    parse(base_url).is_ok_and(|url| crate::http::is_loopback(&url))
}

/// Whether two addresses name the same server, in whatever spelling.
#[must_use]
pub fn is_same_server(one: &str, other: &str) -> bool {
    let plain = |url: &str| normal_base_url(url).map(|url| url.replacen("//localhost:", "//127.0.0.1:", 1));
    matches!((plain(one), plain(other)), (Ok(one), Ok(other)) if one == other)
}

/// Probes one server, on this machine or another: `http://host:port`, `http://host:port/v1`. An address without a path gets `/v1`.
///
/// # Errors
/// [`ProbeError`]. Cancel safety: dropping it closes the connection.
pub async fn probe_url(base_url: &str) -> Result<LocalServer, ProbeError> {
    ask(&HttpClients::default(), &parse(base_url)?, NAMED_TIMEOUT).await
}

/// The address that requests go to: http or https, without a slash at the end, with `/v1` where there is no path.
///
/// # Errors
/// [`ProbeError::Address`].
pub fn normal_base_url(base_url: &str) -> Result<String, ProbeError> {
    parse(base_url).map(|url| text(&url))
}

fn parse(base_url: &str) -> Result<Url, ProbeError> {
    // An address that cannot be parsed may hold a password anywhere, so errors do not repeat it.
    let refused = |url: &str, why| ProbeError::Address { url: url.to_owned(), why };
    let example = "give it as http://HOST:PORT/v1";
    let mut url = Url::parse(base_url.trim()).map_err(|_| refused("this text", example))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(refused("this text", example));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("an address with a user name", "leave the part before the @ out"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("an address with ? or #", example));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(if path.is_empty() { "/v1" } else { &path });
    Ok(url)
}

fn text(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

async fn ask(clients: &HttpClients, base_url: &Url, timeout: Duration) -> Result<LocalServer, ProbeError> {
    let base = text(base_url);
    let url = format!("{base}/models");
    let answer = tokio::time::timeout(timeout, listing_at(clients, &url)).await;
    let body = answer.map_err(|_| ProbeError::Silent { url: url.clone(), timeout })??;
    let models = read_listing(&body).map_err(|what| ProbeError::NotAListing { url, what: what.into() })?;
    let is_loopback = base_url.host_str() == Some("127.0.0.1") || base_url.host_str() == Some("localhost");
    let named = DEFAULT_PORTS.iter().find(|(port, _)| is_loopback && base_url.port() == Some(*port));
    Ok(LocalServer { base_url: base, name: named.map(|(_, name)| *name), models })
}

/// The body of a good answer.
async fn listing_at(clients: &HttpClients, url: &str) -> Result<Vec<u8>, ProbeError> {
    let unreachable = |cause: String| ProbeError::Unreachable { url: url.to_owned(), cause };
    let strange = |what: String| ProbeError::NotAListing { url: url.to_owned(), what };
    let address = Url::parse(url).map_err(|error| unreachable(error.to_string()))?;
    let client = clients.get(&address).map_err(|error| unreachable(error.to_string()))?;
    let sent = client.get(address).send().await;
    let response = sent.map_err(|error| {
        let cause = crate::http::deepest_cause(&error);
        if error.is_connect() { unreachable(cause) } else { strange(cause) }
    })?;
    match response.status() {
        StatusCode::OK => body(response).await.map_err(strange),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(ProbeError::NeedsKey { url: url.to_owned(), status: status.as_u16() })
        }
        status if status.is_redirection() => {
            Err(strange(format!("it sends elsewhere ({})", status.as_u16())))
        }
        status => Err(strange(format!("it answered {}", status.as_u16()))),
    }
}

async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| crate::http::deepest_cause(&error))? {
        if body.len() + chunk.len() > MAX_LISTING_BYTES {
            return Err(format!("the answer is larger than {MAX_LISTING_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The longest id that is taken, in bytes.
const MAX_ID_BYTES: usize = 256;

/// The members with the size of the context window: the size in use before the possible one.
const CONTEXT_KEYS: &[&str] = &[
    "/loaded_context_length",
    "/meta/n_ctx",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/meta/n_ctx_train",
];

/// The models of a listing. The error names what came instead.
fn read_listing(body: &[u8]) -> Result<Vec<LocalModel>, &'static str> {
    let value: Value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON")?;
    let data = value.get("data").and_then(Value::as_array);
    let data = data.ok_or("the answer has no list \"data\"")?;
    let mut models: Vec<LocalModel> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for entry in data {
        // A model without a usable id cannot be requested.
        let Some(id) = entry.get("id").and_then(Value::as_str).filter(|id| is_usable(id)) else { continue };
        if seen.insert(id) {
            models.push(LocalModel {
                id: id.to_owned(),
                context_window: context_window(entry),
                sees_images: sees_images(entry) || details(&value, id).is_some_and(sees_images),
            });
        }
    }
    Ok(models)
}

/// Whether an id can be shown in terminals and written into commands.
fn is_usable(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control)
}

fn context_window(entry: &Value) -> Option<u64> {
    CONTEXT_KEYS.iter().find_map(|key| tokens(entry.pointer(key)?))
}

/// A positive whole number, in whatever form.
fn tokens(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let fits = number.fract() == 0.0 && (1.0..9e15).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        fits.then_some(number as u64)
    });
    number.filter(|number| *number > 0)
}

fn sees_images(entry: &Value) -> bool {
    let lists = ["/capabilities", "/architecture/input_modalities", "/input_modalities", "/modalities"];
    let words = lists.iter().filter_map(|list| entry.pointer(list)?.as_array()).flatten();
    words.filter_map(Value::as_str).any(|word| matches!(word, "image" | "vision" | "multimodal"))
        || entry.get("type").is_some_and(|kind| kind == "vlm")
}

/// The entry of llama.cpp's second list, which holds the capabilities of models.
fn details<'a>(listing: &'a Value, id: &str) -> Option<&'a Value> {
    let models = listing.get("models")?.as_array()?;
    models
        .iter()
        .find(|model| ["model", "name"].iter().any(|key| model.get(key).is_some_and(|name| name == id)))
}

#[cfg(test)]
mod listing_tests {
    use proptest::prelude::*;

    use super::*;

    fn check(body: &str, expected: &[(&str, Option<u64>, bool)]) {
        let models = read_listing(body.as_bytes()).unwrap();
        let found: Vec<_> =
            models.iter().map(|model| (model.id.as_str(), model.context_window, model.sees_images)).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn the_dialects() {
        // The forms are composed from the servers' documentation.
        check(
            r#"{"object":"list","data":[{"id":"llama3.2:latest","object":"model","created":1,"owned_by":"library"}]}"#,
            &[("llama3.2:latest", None, false)],
        );
        check(
            r#"{"models":[{"name":"a.gguf","model":"a.gguf","capabilities":["completion","multimodal"]}],
                "object":"list","data":[{"id":"a.gguf","object":"model","meta":{"n_ctx_train":131072,"n_params":8}}]}"#,
            &[("a.gguf", Some(131_072), true)],
        );
        check(
            r#"{"data":[{"id":"q/w","max_model_len":32768,"meta":{"n_ctx_train":1}},{"id":"o","context_length":8192.0}]}"#,
            &[("q/w", Some(32_768), false), ("o", Some(8192), false)],
        );
        check(
            r#"{"data":[{"id":"v","type":"vlm","max_context_length":4096,"loaded_context_length":2048}]}"#,
            &[("v", Some(2048), true)],
        );
        check(r#"{"data":[]}"#, &[]);
    }

    #[test]
    fn what_cannot_be_used_is_left_out() {
        check(
            r#"{"data":[{"id":"a","max_model_len":0},{"id":"a","max_model_len":5},{"id":" "},{"id":"\u001b[2J"},{"id":5},7,
                {"id":"b","context_length":"much","max_model_len":-1}]}"#,
            &[("a", None, false), ("b", None, false)],
        );
    }

    #[test]
    fn another_answer_is_no_listing() {
        assert_eq!(read_listing(b"<html>"), Err("the answer is not JSON"));
        for body in ["[]", "{}", "null", r#"{"data":{}}"#, r#"{"error":"no"}"#] {
            assert_eq!(read_listing(body.as_bytes()), Err("the answer has no list \"data\""), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body: Vec<u8>) {
            let _ = read_listing(&body);
        }
    }
}

#[cfg(test)]
mod tests;
