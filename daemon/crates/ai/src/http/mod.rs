//! HTTP for the adapters: one request at a time, no retries.

mod client;
mod error_body;
mod exchange;
mod form;
mod redact;
pub(crate) mod sse;

pub(crate) use client::HttpClients;
pub(crate) use error_body::ErrorBody;
pub(crate) use exchange::{Post, Server};
pub(crate) use form::Form;
pub(crate) use redact::Redactor;
