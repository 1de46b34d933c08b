//! The chat completions API of OpenAI and its many imitations: the adapter for `openai-completions`.

mod api_types;
mod blocks;
mod compat;
mod decode;
mod headers;
mod messages;
mod pieces;
mod request;
mod thinking;

use self::{compat::Compat, decode::CompletionsDecoder, headers::headers};
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, OutgoingRequest, Server, endpoint, unwritable},
};

/// Speaks `openai-completions`.
pub(crate) struct OpenAiCompletions;

impl Adapter for OpenAiCompletions {
    type Decoder = CompletionsDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let compat = Compat::of(&request.model);
        let body = request::body(request, &compat).map_err(|error| unwritable(&error))?;
        Ok(OutgoingRequest {
            url: endpoint(&request.model, "/chat/completions", "http://127.0.0.1:8080/v1")?,
            headers: headers(request, &compat)?,
            body,
            sign: None,
        })
    }

    fn decoder(&self, request: &Request, server: Server) -> CompletionsDecoder {
        CompletionsDecoder::new(server, &request.model.id, &Compat::of(&request.model))
    }
}

#[cfg(test)]
mod tests;
