//! The adapter: requests out, answers in.

use super::{decode::Reader, encode};
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, HeaderList, Outgoing, Server, endpoint, unwritable},
};

/// Speaks `pi-messages`.
pub(crate) struct PiMessages;

impl Adapter for PiMessages {
    type Wire = Reader;

    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure> {
        let mut headers = HeaderList::new(request)?;
        headers.bearer(&request.credentials)?;
        Ok(Outgoing {
            url: endpoint(&request.model, "/messages", "https://radius.pi.dev/v1")?,
            headers: headers.finish(&request.credentials)?,
            body: encode::body(request).map_err(|error| unwritable(&error))?,
            sign: None,
        })
    }

    fn wire(&self, _: &Request, server: Server) -> Reader {
        Reader::new(server)
    }
}
