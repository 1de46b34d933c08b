//! The responses API of OpenAI and its imitations: the adapter for `openai-responses`, and what Azure's and Codex's adapters share with it.

mod api_types;
mod blocks;
mod compat;
mod decode;
mod errors;
mod headers;
mod input;
#[cfg(test)]
pub(super) mod one_answer;
mod request;
mod signature;

use self::headers::headers;
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, OutgoingRequest, Server, endpoint, unwritable},
};

pub(super) use compat::{Compat, Dialect};
pub(super) use decode::ResponsesDecoder;
pub(super) use headers::start as start_headers;
pub(super) use request::body;

/// Speaks `openai-responses`.
pub(crate) struct OpenAiResponses;

impl Adapter for OpenAiResponses {
    type Decoder = ResponsesDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let compat = Compat::of(&request.model, Dialect::OpenAi);
        let body = body(request, &compat).map_err(|error| unwritable(&error))?;
        Ok(OutgoingRequest {
            url: endpoint(&request.model, "/responses", "https://api.openai.com/v1")?,
            headers: headers(request, &compat)?,
            body,
            sign: None,
        })
    }

    fn decoder(&self, request: &Request, server: Server) -> ResponsesDecoder {
        ResponsesDecoder::new(server, &request.model)
    }
}

#[cfg(test)]
mod tests;
