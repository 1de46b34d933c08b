//! The responses API of OpenAI, and of the servers that imitate it.

mod answer;
mod blocks;
mod call_id;
mod compat;
mod decode;
mod encode;
mod headers;
mod input;
mod provider;
mod reasoning;
mod signature;
mod trouble;
mod usage;
mod wire;

pub(crate) use provider::OpenAiResponses;
