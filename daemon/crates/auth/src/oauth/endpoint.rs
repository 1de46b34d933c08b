//! Asking the endpoints that give tokens.

use std::{sync::Arc, time::Duration};

use agentd_http::{HttpClients, Network, deepest_cause, is_loopback, register_secret, scrub};
use agentd_protocol::oauth_setting::TokenFormat;
use reqwest::{
    Method, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT},
};
use serde_json::{Map, Value};

use crate::Secret;

/// The timeout of one answer.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// The longest answer. Real ones have a few kilobytes; lists of models some hundred.
const MAX_BYTES: usize = 1 << 20;

/// The characters of a server's text that are shown.
const MAX_SHOWN: usize = 300;

/// The shortest secret that is searched for in shown text.
const MIN_SECRET_BYTES: usize = 6;

/// A request to such an endpoint.
pub struct EndpointRequest<'a> {
    /// The address: https, or of this machine.
    pub url: &'a str,
    /// The method and the body.
    pub what: RequestKind<'a>,
    /// Sent as a bearer token.
    pub bearer: Option<&'a Secret>,
    /// More headers.
    pub headers: &'a [(&'a str, &'a str)],
}

/// A request.
pub enum RequestKind<'a> {
    /// A GET.
    Get,
    /// A GET without TLS, from a server of this machine's network: nothing secret is sent.
    GetNearby,
    /// A POST of fields.
    Post(TokenFormat, &'a [(&'a str, &'a str)]),
    /// A POST of a JSON document that holds no secret.
    PostJson(&'a Value),
}

/// Why an endpoint gave nothing. No message holds what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address cannot be used.
    #[error("{url} cannot be asked for tokens: {why}")]
    Address {
        /// The address.
        url: String,
        /// Why.
        why: &'static str,
    },
    /// No answer came.
    #[error("{host} gave no answer: {cause}")]
    Unreachable {
        /// The host that was asked.
        host: String,
        /// Why, as far as it is known.
        cause: String,
    },
    /// The answer is none that could be understood.
    #[error("{host} answered with {status}, and with something else than was asked for: {why}")]
    Unusable {
        /// The host that was asked.
        host: String,
        /// The status.
        status: u16,
        /// The fault.
        why: String,
    },
    /// It said no.
    #[error("{host} refused with {status}{}", says(.error.as_deref(), .description.as_deref()))]
    Refused {
        /// The host that was asked.
        host: String,
        /// The status.
        status: u16,
        /// The error's name, such as `invalid_grant`.
        error: Option<String>,
        /// More words of the server's.
        description: Option<String>,
    },
}

fn says(error: Option<&str>, description: Option<&str>) -> String {
    let words: Vec<&str> = error.into_iter().chain(description).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(": ")) }
}

impl EndpointError {
    /// The error's name, where the server gave one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// The status of the answer, where there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Unusable { status, .. } => Some(*status),
            Self::Address { .. } | Self::Unreachable { .. } => None,
        }
    }

    /// Returns whether the same request may work later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } | Self::Unusable { status, .. } => *status == 429 || *status >= 500,
            Self::Address { .. } => false,
        }
    }
}

/// The secret fields of a request.
const SECRET_FIELDS: [&str; 8] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
];

/// Asks once; the object that comes back. Only loopback addresses are asked without TLS: what is sent are secrets.
///
/// # Errors
/// [`EndpointError`]. Cancel safety: dropping the future closes the connection.
pub(crate) async fn ask(
    http: &HttpClients,
    request: EndpointRequest<'_>,
) -> Result<Map<String, Value>, EndpointError> {
    ask_by(http, None, request).await
}

/// As `ask`, by the proxies and certificates of a network; `None` for those of the process.
///
/// # Errors
/// [`EndpointError`]. Cancel safety: dropping the future closes the connection.
pub async fn ask_by(
    http: &HttpClients,
    network: Option<&Arc<Network>>,
    ask: EndpointRequest<'_>,
) -> Result<Map<String, Value>, EndpointError> {
    let url = match ask.what {
        RequestKind::GetNearby => nearby(ask.url)?,
        RequestKind::Get | RequestKind::Post(..) | RequestKind::PostJson(_) => address(ask.url)?,
    };
    let host = host_of(&url);
    let unreachable = |cause: String| EndpointError::Unreachable { host: host.clone(), cause };
    let client = match network {
        Some(network) => http.get_by(&url, network),
        None => http.get(&url),
    };
    let client = client.map_err(|error| unreachable(error.to_string()))?;
    let method = if matches!(ask.what, RequestKind::Get | RequestKind::GetNearby) {
        Method::GET
    } else {
        Method::POST
    };
    let mut request = client
        .request(method, url)
        .timeout(TIME_LIMIT)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("agentd/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = ask.bearer {
        register_secret(token.expose());
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    for (name, value) in ask.headers {
        request = request.header(*name, *value);
    }
    let fields = match ask.what {
        RequestKind::Get | RequestKind::GetNearby => &[],
        RequestKind::PostJson(document) => {
            request = request.header(CONTENT_TYPE, "application/json").body(document.to_string());
            &[]
        }
        RequestKind::Post(format, fields) => {
            let (kind, body) = body(format, fields);
            request = request.header(CONTENT_TYPE, kind).body(body);
            fields
        }
    };
    let is_secret = |(name, _): &&(&str, &str)| SECRET_FIELDS.contains(name);
    fields.iter().filter(is_secret).for_each(|(_, value)| register_secret(value));
    let cause = |error: reqwest::Error| {
        if error.is_timeout() {
            unreachable(format!("nothing came within {} seconds", TIME_LIMIT.as_secs()))
        } else {
            unreachable(deepest_cause(&error))
        }
    };
    let mut response = request.send().await.map_err(cause)?;
    let status = response.status().as_u16();
    let unusable = |why: &str| EndpointError::Unusable { host: host.clone(), status, why: why.to_owned() };
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(cause)? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(unusable("it is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
    let value: Option<Value> = serde_json::from_slice(&bytes).ok();
    let headers = ask.headers.iter().map(|(_, value)| *value);
    let fields = fields.iter().map(|(_, value)| *value);
    let hidden: Vec<&str> = fields.chain(headers).chain(ask.bearer.map(Secret::expose)).collect();
    // Some servers refuse with a good status.
    let refused =
        value.as_ref().is_some_and(|value| value.get("error").is_some_and(|error| !error.is_null()));
    if !(200..300).contains(&status) || refused {
        let (error, description) = value.as_ref().map(|value| words(value, &hidden)).unwrap_or_default();
        return Err(EndpointError::Refused { host: host.clone(), status, error, description });
    }
    match value {
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err(unusable("it is no JSON object")),
        None => Err(unusable("it is no JSON")),
    }
}

/// Checks the address of an endpoint: https, or of this machine.
///
/// # Errors
/// [`EndpointError::Address`].
pub fn address(text: &str) -> Result<Url, EndpointError> {
    let wrong = |why| EndpointError::Address { url: shown(text, &[]), why };
    let url = Url::parse(text).map_err(|_| wrong("it is no URL"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(wrong("secrets are sent to https addresses only")),
        _ => Err(wrong("it is no https address")),
    }
}

fn nearby(text: &str) -> Result<Url, EndpointError> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "http");
    url.ok_or_else(|| EndpointError::Address { url: shown(text, &[]), why: "it is no http address" })
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn body(format: TokenFormat, fields: &[(&str, &str)]) -> (&'static str, String) {
    match format {
        TokenFormat::Form => ("application/x-www-form-urlencoded", query(fields)),
        TokenFormat::Json => {
            let object: Map<String, Value> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            ("application/json", Value::Object(object).to_string())
        }
    }
}

/// Fields as a query has them.
#[must_use]
pub fn query(fields: &[(&str, &str)]) -> String {
    let escaped = |text: &str| {
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    pairs.join("&")
}

/// The name and the description of a refusal, in the forms that servers use.
fn words(value: &Value, hidden: &[&str]) -> (Option<String>, Option<String>) {
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(|text| shown(text, hidden))
    };
    let error = value.get("error");
    let inner = error.filter(|error| error.is_object());
    let name = text(error).or_else(|| text(inner.and_then(|inner| inner.get("type").or(inner.get("code")))));
    let description = text(value.get("error_description"))
        .or_else(|| text(inner.and_then(|inner| inner.get("message"))))
        .or_else(|| text(value.get("message")));
    (name, description)
}

/// A server's text, fit to be shown: on one line, not too long, without the secrets that were sent.
pub(crate) fn shown(text: &str, hidden: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in hidden.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
        if text.contains(*secret) {
            text = text.replace(*secret, "[redacted]");
        }
    }
    let one_line: String =
        scrub(&text).chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHOWN).collect();
    one_line.trim().to_owned()
}

/// A member that is a text with something in it.
pub(super) fn text(answer: &Map<String, Value>, name: &str) -> Option<String> {
    answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A number, also one in quotes, as some servers write it.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_go_to_safe_places_only() {
        for (url, good) in [
            ("https://h/token", true),
            ("http://127.0.0.1:1/token", true),
            ("http://localhost/token", true),
            ("http://h/token", false),
            ("ftp://h/token", false),
            ("h/token", false),
            ("", false),
        ] {
            assert_eq!(address(url).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn fields_are_escaped() {
        assert_eq!(query(&[("a b", "c&d=é"), ("e", "")]), "a%20b=c%26d%3D%C3%A9&e=");
        assert_eq!(body(TokenFormat::Json, &[("a", "\"")]).1, r#"{"a":"\""}"#);
    }

    #[test]
    fn refusals_are_told_without_what_was_sent() {
        let check = |value: Value, expected: (Option<&str>, Option<&str>)| {
            let (name, description) = words(&value, &["hush-hush"]);
            assert_eq!((name.as_deref(), description.as_deref()), expected, "{value}");
        };
        check(
            json!({"error": "invalid_grant", "error_description": "no hush-hush\nhere"}),
            (Some("invalid_grant"), Some("no [redacted] here")),
        );
        check(json!({"error": {"type": "t", "message": "m"}}), (Some("t"), Some("m")));
        check(json!({"message": "m"}), (None, Some("m")));
        check(json!([1]), (None, None));
        let refused = EndpointError::Refused {
            host: "h".into(),
            status: 400,
            error: Some("e".into()),
            description: Some("d".into()),
        };
        assert_eq!(refused.to_string(), "h refused with 400 (e: d)");
        assert!(shown(&"x".repeat(1000), &[]).len() == MAX_SHOWN);
    }
}
