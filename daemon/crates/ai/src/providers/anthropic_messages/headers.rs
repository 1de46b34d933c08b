//! The headers of a request.

use reqwest::header::HeaderMap;

use super::{compat::Compat, thinking::Thinking};
use crate::{CacheRetention, Request, failure::Failure, http::HeaderList};

/// The mark of subscription tokens, which go into `Authorization`; API keys have a header of their own.
const TOKEN_MARK: &str = "sk-ant-oat";

/// All headers for `request`.
///
/// # Errors
/// Names the header that cannot be sent.
pub(super) fn headers(
    request: &Request,
    compat: &Compat,
    thinking: &Thinking,
    has_tools: bool,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderList::new(request)?;
    headers.set("anthropic-version", "2023-06-01")?;
    let is_token = request.credentials.key().is_some_and(|key| key.contains(TOKEN_MARK));
    let mut betas = Vec::new();
    if is_token {
        betas.push("oauth-2025-04-20");
    }
    if has_tools && !compat.supports_eager_tool_input_streaming {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if matches!(thinking, Thinking::Budget { .. }) {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if !compat.fallback_models.is_empty() {
        betas.push("server-side-fallback-2026-07-01");
    }
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","))?;
    }
    let is_cached = request.cache_retention != CacheRetention::None && !request.session_id.is_empty();
    if compat.send_session_affinity_headers && is_cached {
        headers.set(compat.session_affinity_header, &request.session_id)?;
    }
    if is_token || compat.wants_bearer {
        headers.bearer(&request.credentials)?;
    } else {
        headers.key("x-api-key", &request.credentials)?;
    }
    headers.finish(&request.credentials)
}
