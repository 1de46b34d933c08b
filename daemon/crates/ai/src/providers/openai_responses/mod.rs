//! The responses API of OpenAI, and of the servers that imitate it.

mod answer;
mod blocks;
mod call_id;
mod compat;
mod decode;
mod dialect;
mod encode;
mod headers;
mod input;
#[cfg(test)]
pub(super) mod one_answer;
mod provider;
mod reasoning;
mod signature;
mod trouble;
mod usage;
mod wire;

pub(super) use compat::Compat;
pub(super) use decode::Reader;
pub(super) use dialect::Dialect;
pub(super) use encode::body;
pub(super) use headers::start as start_headers;
pub(crate) use provider::OpenAiResponses;
