//! Google's `streamGenerateContent`: the adapters for `google-generative-ai` (Gemini API) and `google-vertex` (Vertex AI).

mod address;
mod api_types;
mod contents;
mod decode;
mod family;
mod request;
mod stop;
mod thinking;

use std::time::{SystemTime, UNIX_EPOCH};

use self::{address::Access, decode::GoogleDecoder};
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, HeaderList, OutgoingRequest, Server, unwritable},
};

/// The header that API keys go in.
const KEY_HEADER: &str = "x-goog-api-key";

/// Speaks `google-generative-ai`, the Gemini API.
pub(crate) struct GoogleGenerativeAi {
    /// The time, in Unix milliseconds: part of the ids of calls that come without one.
    pub(crate) now: fn() -> u128,
}

/// Speaks `google-vertex`: Vertex AI, with a project of Google Cloud or a key.
pub(crate) struct GoogleVertex {
    /// As in [`GoogleGenerativeAi`].
    pub(crate) now: fn() -> u128,
}

impl Default for GoogleGenerativeAi {
    fn default() -> Self {
        Self { now: unix_ms }
    }
}

impl Default for GoogleVertex {
    fn default() -> Self {
        Self { now: unix_ms }
    }
}

impl Adapter for GoogleGenerativeAi {
    type Decoder = GoogleDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let url = address::gemini(&request.model)?;
        let is_token = request.credentials.key().is_some_and(address::is_token);
        let access = if is_token { Access::Token } else { Access::Key };
        outgoing(request, url, access)
    }

    fn decoder(&self, request: &Request, server: Server) -> GoogleDecoder {
        GoogleDecoder::new(server, &request.model.id, (self.now)())
    }
}

impl Adapter for GoogleVertex {
    type Decoder = GoogleDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let (url, access) = address::vertex(request)?;
        outgoing(request, url, access)
    }

    fn decoder(&self, request: &Request, server: Server) -> GoogleDecoder {
        GoogleDecoder::new(server, &request.model.id, (self.now)())
    }
}

fn outgoing(request: &Request, url: reqwest::Url, access: Access) -> Result<OutgoingRequest, Failure> {
    let mut headers = HeaderList::new(request)?;
    match access {
        Access::Key => headers.key(KEY_HEADER, &request.credentials)?,
        Access::Token => headers.bearer(&request.credentials)?,
        Access::Header => {}
    }
    let headers = headers.finish(&request.credentials)?;
    let body = request::body(request).map_err(|error| unwritable(&error))?;
    Ok(OutgoingRequest { url, headers, body, sign: None })
}

fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis())
}

#[cfg(test)]
mod tests;
