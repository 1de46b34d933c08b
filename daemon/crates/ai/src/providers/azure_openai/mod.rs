//! The responses API as Azure has it: a deployment of the user's in the place of the model, a version in the address, a
//! header of its own for the key. Everything else is [`openai_responses`](super::openai_responses).

use reqwest::Url;

use crate::{
    Request,
    failure::Failure,
    http::{Adapter, OutgoingRequest, Server, endpoint, unwritable},
    providers::openai_responses::{Compat, Dialect, ResponsesDecoder, body, start_headers},
};

/// The version of the API, where the user names no other: the one that does not change any more.
const API_VERSION: &str = "v1";

/// Speaks `azure-openai-responses`.
pub(crate) struct AzureOpenAi;

impl Adapter for AzureOpenAi {
    type Decoder = ResponsesDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let compat = Compat::of(&request.model, Dialect::Azure);
        let mut headers = start_headers(request, &compat)?;
        headers.key("api-key", &request.credentials)?;
        Ok(OutgoingRequest {
            url: address(request)?,
            headers: headers.finish(&request.credentials)?,
            body: body(request, &compat).map_err(|error| unwritable(&error))?,
            sign: None,
        })
    }

    fn decoder(&self, request: &Request, server: Server) -> ResponsesDecoder {
        ResponsesDecoder::new(server, &request.model)
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
