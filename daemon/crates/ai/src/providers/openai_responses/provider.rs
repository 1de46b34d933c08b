//! The adapter: requests out, answers in.

use super::{Dialect, compat::Compat, decode::Reader, encode, headers::headers};
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, Outgoing, Server, endpoint, unwritable},
};

/// Speaks `openai-responses`.
pub(crate) struct OpenAiResponses;

impl Adapter for OpenAiResponses {
    type Wire = Reader;

    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure> {
        let compat = Compat::of(&request.model, Dialect::OpenAi);
        let body = encode::body(request, &compat).map_err(|error| unwritable(&error))?;
        Ok(Outgoing {
            url: endpoint(&request.model, "/responses", "https://api.openai.com/v1")?,
            headers: headers(request, &compat)?,
            body,
            sign: None,
        })
    }

    fn wire(&self, request: &Request, server: Server) -> Reader {
        Reader::new(server, &request.model)
    }
}

#[cfg(test)]
mod tests;
