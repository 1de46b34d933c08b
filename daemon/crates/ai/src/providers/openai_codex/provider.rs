//! The adapter: requests out, answers in.

use reqwest::Url;

use super::{account::account_id, limits};
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, Explain, NAME, Outgoing, Server, endpoint, unwritable},
    providers::openai_responses::{Compat, Dialect, Reader, body, start_headers},
};

/// Speaks `openai-codex-responses`, by event streams.
pub(crate) struct OpenAiCodex;

impl Adapter for OpenAiCodex {
    type Wire = Reader;

    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure> {
        let compat = Compat::of(&request.model, Dialect::Codex);
        let mut headers = start_headers(request, &compat)?;
        headers.set("openai-beta", "responses=experimental")?;
        headers.set("originator", NAME)?;
        headers.set("chatgpt-account-id", &account_id(request)?)?;
        headers.bearer(&request.credentials)?;
        Ok(Outgoing {
            url: address(request)?,
            headers: headers.finish(&request.credentials)?,
            body: body(request, &compat).map_err(|error| unwritable(&error))?,
            sign: None,
        })
    }

    fn wire(&self, request: &Request, server: Server) -> Reader {
        Reader::new(server, &request.model)
    }

    fn explain(&self) -> Option<Explain> {
        Some(limits::explain)
    }
}

/// Where requests go. The configured address may have a part of the path already.
fn address(request: &Request) -> Result<Url, Failure> {
    let base = request.model.base_url.split('?').next().unwrap_or_default().trim().trim_end_matches('/');
    let path = if base.ends_with("/codex/responses") {
        ""
    } else if base.ends_with("/codex") {
        "/responses"
    } else {
        "/codex/responses"
    };
    endpoint(&request.model, path, "https://chatgpt.com/backend-api")
}

#[cfg(test)]
mod tests;
