//! HTTP for the adapters: one request at a time, sent again only while nothing of an answer has come.

mod adapter;
mod answer;
mod decoder;
mod error_body;
pub(crate) mod event_stream;
mod exchange;
mod headers;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod laws;
#[cfg(test)]
mod networks;
mod provider;
mod retry;
mod server;
pub(crate) mod sse;
#[cfg(test)]
mod stalls;
mod timeouts;

pub(crate) use adapter::{
    Adapter, AnswerDecoder, DecodeStep, Explain, Framing, OutgoingRequest, Signer, unwritable,
};
pub(crate) use agentd_http::{HttpClients, Redactor, deepest_cause, is_loopback};
pub(crate) use decoder::BodyDecoder;
pub(crate) use error_body::{AwsError, ErrorBody};
pub(crate) use exchange::HttpExchange;
pub(crate) use headers::{HeaderList, endpoint};
pub(crate) use provider::HttpProvider;
pub(crate) use server::Server;
