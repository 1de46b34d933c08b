//! The headers of a request. Later ones win: identity, affinity, key, then what is configured.

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderName,
    InvalidHeaderValue, USER_AGENT,
};

use super::compat::Compat;
use crate::Request;

/// How agentd presents itself.
const IDENTITY: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// A header that cannot be sent. The text never holds the value.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("\"{name}\" is no valid name of a header")]
    Name {
        name: String,
        #[source]
        source: InvalidHeaderName,
    },
    #[error(
        "the value of the header \"{name}\" has characters that no header may have (a line break, perhaps)"
    )]
    Value {
        name: String,
        #[source]
        source: InvalidHeaderValue,
    },
    #[error("the API key has characters that no header may have (a line break, perhaps)")]
    Key {
        #[source]
        source: InvalidHeaderValue,
    },
}

/// All headers for `request`.
///
/// # Errors
/// [`HeaderError`] names the header that cannot be sent.
pub(super) fn headers(request: &Request, compat: &Compat) -> Result<HeaderMap, HeaderError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let agent = format!("{IDENTITY} ({}; {})", std::env::consts::OS, std::env::consts::ARCH);
    insert(&mut headers, USER_AGENT.as_str(), &agent)?;
    if compat.reports_cost {
        insert(&mut headers, "http-referer", env!("CARGO_PKG_REPOSITORY"))?;
        insert(&mut headers, "x-openrouter-title", "agentd")?;
    }
    if compat.send_session_affinity_headers && !request.session_id.is_empty() {
        let names: &[&str] = match compat.session_affinity_format.as_str() {
            "openrouter" => &["x-session-id"],
            "openai-nosession" => &["x-client-request-id", "x-session-affinity"],
            _ => &["session_id", "x-client-request-id", "x-session-affinity"],
        };
        for name in names {
            insert(&mut headers, name, &request.session_id)?;
        }
    }
    if let Some(key) = request.credentials.api_key.as_ref().filter(|key| !key.expose().is_empty()) {
        let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose().trim()))
            .map_err(|source| HeaderError::Key { source })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &request.credentials.headers {
        let mut value = header_value(name, value.expose())?;
        value.set_sensitive(true);
        headers.insert(header_name(name)?, value);
    }
    Ok(headers)
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), HeaderError> {
    headers.insert(header_name(name)?, header_value(name, value)?);
    Ok(())
}

fn header_name(name: &str) -> Result<HeaderName, HeaderError> {
    name.parse().map_err(|source| HeaderError::Name { name: name.to_owned(), source })
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, HeaderError> {
    HeaderValue::from_str(value).map_err(|source| HeaderError::Value { name: name.to_owned(), source })
}
