//! The Converse API of Amazon Bedrock: the adapter for `bedrock-converse-stream`.

mod api_types;
mod blocks;
mod decode;
mod endpoint;
mod messages;
mod model_traits;
mod request;
mod thinking;

use agentd_http::sigv4::{self, SigningScope};
use reqwest::header::AUTHORIZATION;

use self::decode::ConverseDecoder;
use crate::{
    Request,
    failure::{Failure, FailureKind},
    http::{Adapter, HeaderList, OutgoingRequest, Server, Signer, unwritable},
};

/// Speaks `bedrock-converse-stream`.
pub(crate) struct BedrockConverse;

impl Adapter for BedrockConverse {
    type Decoder = ConverseDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let url = endpoint::address(request)?;
        let mut headers = HeaderList::new(request)?;
        headers.set("accept", "application/vnd.amazon.eventstream")?;
        headers.bearer(&request.credentials)?;
        let headers = headers.finish(&request.credentials)?;
        // A request with a token of any kind is not signed.
        let sign = if headers.contains_key(AUTHORIZATION) { None } else { signer(request, &url)? };
        let body = request::body(request).map_err(|error| unwritable(&error))?;
        Ok(OutgoingRequest { url, headers, body, sign })
    }

    fn decoder(&self, _: &Request, server: Server) -> ConverseDecoder {
        ConverseDecoder::new(server)
    }
}

/// Signs with the keys of the account; `None` without keys.
fn signer(request: &Request, url: &reqwest::Url) -> Result<Option<Signer>, Failure> {
    let Some(keys) = request.credentials.aws.clone() else { return Ok(None) };
    let region = endpoint::region(request, url)?;
    let provider = request.model.provider.clone();
    Ok(Some(Box::new(move |url, headers, body, now| {
        let scope = SigningScope { region: &region, service: "bedrock" };
        sigv4::sign("POST", url, headers, body, &keys, scope, now).map_err(|error| {
            let message = format!("The request to provider \"{provider}\" cannot be signed: {error}.");
            Failure::new(FailureKind::Fatal, message)
        })
    })))
}

#[cfg(test)]
mod tests;
