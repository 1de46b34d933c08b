//! HTTP for the adapters: one request at a time, sent again only where nothing of an answer has come.

mod answer;
mod aws_error;
mod decoder;
mod error_body;
pub(crate) mod event_stream;
mod exchange;
mod form;
mod headers;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod laws;
#[cfg(test)]
mod networks;
mod patience;
mod retry;
mod server;
pub(crate) mod sse;
#[cfg(test)]
mod stalls;
mod wire;

pub(crate) use agentd_http::{HttpClients, Redactor, deepest_cause, is_loopback};
pub(crate) use aws_error::AwsError;
pub(crate) use decoder::Decoder;
pub(crate) use error_body::ErrorBody;
pub(crate) use exchange::Post;
pub(crate) use form::Form;
pub(crate) use headers::{HeaderList, Host, NAME, endpoint};
pub(crate) use server::Server;
pub(crate) use wire::{Adapter, Explain, Framing, HttpProvider, Outgoing, Signer, Step, Wire, unwritable};
