//! The headers of a request.

use reqwest::header::HeaderMap;

use super::compat::Compat;
use crate::{CacheRetention, Request, failure::Failure, http::HeaderList};

/// All headers for `request`.
///
/// # Errors
/// Names the header that cannot be sent.
pub(super) fn headers(request: &Request, compat: &Compat) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderList::new(request)?;
    let is_cached = request.cache_retention != CacheRetention::None && !request.session_id.is_empty();
    if compat.send_session_affinity_headers && is_cached {
        let names: &[&str] = match compat.session_affinity_format.as_str() {
            "openrouter" => &["x-session-id"],
            "openai-nosession" => &["x-client-request-id", "x-session-affinity"],
            _ => &["session_id", "x-client-request-id", "x-session-affinity"],
        };
        for name in names {
            headers.set(name, &request.session_id)?;
        }
    }
    headers.bearer(&request.credentials)?;
    headers.finish(&request.credentials)
}
