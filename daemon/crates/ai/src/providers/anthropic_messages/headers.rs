//! The headers of a request.

use reqwest::header::HeaderMap;

use super::{compat::Compat, thinking::Thinking};
use crate::{Request, failure::Failure, http::HeaderList};

/// What tokens of a subscription hold; an API key goes into a header of its own.
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
    let mut betas = Vec::new();
    if has_tools && !compat.supports_eager_tool_input_streaming {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if matches!(thinking, Thinking::Budget { .. }) {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","))?;
    }
    if compat.send_session_affinity_headers && !request.session_id.is_empty() {
        headers.set(compat.session_affinity_header, &request.session_id)?;
    }
    let is_token = request.credentials.key().is_some_and(|key| key.contains(TOKEN_MARK));
    if is_token || compat.wants_bearer {
        headers.bearer(&request.credentials)?;
    } else {
        headers.key("x-api-key", &request.credentials)?;
    }
    headers.finish(&request.credentials)
}
