//! The messages API of Anthropic and its imitations: the adapter for `anthropic-messages`.

mod api_types;
mod blocks;
mod compat;
mod decode;
mod headers;
mod messages;
mod request;
mod thinking;
mod usual_delta;

use agentd_protocol::model::Model;
use reqwest::Url;

use self::{compat::Compat, decode::MessagesDecoder, headers::headers, thinking::Thinking};
use crate::{
    Request,
    estimate::input_tokens,
    failure::Failure,
    handoff,
    http::{Adapter, OutgoingRequest, Server, endpoint, unwritable},
};

/// Speaks `anthropic-messages`.
pub(crate) struct AnthropicMessages;

impl Adapter for AnthropicMessages {
    type Decoder = MessagesDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let compat = Compat::of(&request.model);
        let readable = handoff::readable(&request.messages);
        let thinking = Thinking::of(request, &compat, input_tokens(&readable));
        let encoded =
            request::body(request, &readable, &compat, &thinking).map_err(|error| unwritable(&error))?;
        Ok(OutgoingRequest {
            url: address(&request.model)?,
            headers: headers(request, &compat, &thinking, encoded.has_tools)?,
            body: encoded.json,
            sign: None,
        })
    }

    fn decoder(&self, request: &Request, server: Server) -> MessagesDecoder {
        MessagesDecoder::new(server, &request.model)
    }
}

/// The address of requests. The vendor's own base URL has no version, those of local servers often do.
fn address(model: &Model) -> Result<Url, Failure> {
    let base = model.base_url.split('?').next().unwrap_or_default();
    let versioned = base.trim().trim_end_matches('/').ends_with("/v1");
    let path = if versioned { "/messages?beta=true" } else { "/v1/messages?beta=true" };
    endpoint(model, path, "https://api.anthropic.com")
}

#[cfg(test)]
mod tests;
