//! The adapter: requests out, answers in.

use agentd_http::sigv4::{self, SigningScope};
use reqwest::header::AUTHORIZATION;

use super::{decode::Reader, encode, place};
use crate::{
    Request,
    failure::{Failure, FailureKind},
    http::{Adapter, HeaderList, Outgoing, Server, Signer, unwritable},
};

/// Speaks `bedrock-converse-stream`.
pub(crate) struct BedrockConverse;

impl Adapter for BedrockConverse {
    type Wire = Reader;

    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure> {
        let url = place::address(request)?;
        let mut headers = HeaderList::new(request)?;
        headers.set("accept", "application/vnd.amazon.eventstream")?;
        headers.bearer(&request.credentials)?;
        let headers = headers.finish(&request.credentials)?;
        // Who has a token of any kind is not signed for.
        let sign = if headers.contains_key(AUTHORIZATION) { None } else { signer(request, &url)? };
        let body = encode::body(request).map_err(|error| unwritable(&error))?;
        Ok(Outgoing { url, headers, body, sign })
    }

    fn wire(&self, _: &Request, server: Server) -> Reader {
        Reader::new(server)
    }
}

/// Signs with the keys of the account, where it has keys.
fn signer(request: &Request, url: &reqwest::Url) -> Result<Option<Signer>, Failure> {
    let Some(keys) = request.credentials.aws.clone() else { return Ok(None) };
    let region = place::region(request, url)?;
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
