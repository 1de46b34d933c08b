//! The responses API of Azure: the adapter for `azure-openai-responses`. It has a deployment of the user in place of the model, a version
//! in the address, and its own header for the key; all else is in [`openai_responses`](super::openai_responses).

use reqwest::Url;

use crate::{
    Request,
    failure::Failure,
    http::{Adapter, OutgoingRequest, Server, endpoint, unwritable},
    providers::openai_responses::{Compat, Dialect, ResponsesDecoder, body, start_headers},
};

/// The default version of the API, which is stable.
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

/// The address of requests. A version in the configured address stays.
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
