//! The `pi-messages` API: a gateway that takes the stored transcript and sends the events that clients get.

mod decode;
mod request;

use self::decode::PiMessagesDecoder;
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, HeaderList, OutgoingRequest, Server, endpoint, unwritable},
};

/// Speaks `pi-messages`.
pub(crate) struct PiMessages;

impl Adapter for PiMessages {
    type Decoder = PiMessagesDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let mut headers = HeaderList::new(request)?;
        headers.bearer(&request.credentials)?;
        Ok(OutgoingRequest {
            url: endpoint(&request.model, "/messages", "https://radius.pi.dev/v1")?,
            headers: headers.finish(&request.credentials)?,
            body: request::body(request).map_err(|error| unwritable(&error))?,
            sign: None,
        })
    }

    fn decoder(&self, _: &Request, server: Server) -> PiMessagesDecoder {
        PiMessagesDecoder::new(server)
    }
}
