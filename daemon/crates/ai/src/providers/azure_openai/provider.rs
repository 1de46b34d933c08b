//! The adapter: requests out, answers in.

use reqwest::Url;

use crate::{
    Request,
    failure::Failure,
    http::{Adapter, Outgoing, Server, endpoint, unwritable},
    providers::openai_responses::{Compat, Dialect, Reader, body, start_headers},
};

/// The version of the API, where the user names no other: the one that does not change any more.
const API_VERSION: &str = "v1";

/// Speaks `azure-openai-responses`.
pub(crate) struct AzureOpenAi;

impl Adapter for AzureOpenAi {
    type Wire = Reader;

    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure> {
        let compat = Compat::of(&request.model, Dialect::Azure);
        let mut headers = start_headers(request, &compat)?;
        headers.key("api-key", &request.credentials)?;
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
}

/// Where requests go. A version that the configured address has stays.
fn address(request: &Request) -> Result<Url, Failure> {
    let mut url = endpoint(&request.model, "/responses", "https://NAME.openai.azure.com/openai/v1")?;
    if !url.query_pairs().any(|(name, _)| name == "api-version") {
        let version = request.credentials.account.api_version.as_deref().unwrap_or(API_VERSION);
        url.query_pairs_mut().append_pair("api-version", version);
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
