//! The messages API of Anthropic, and of the servers that imitate it.

mod blocks;
mod cache;
pub(crate) mod call_id;
mod compat;
mod decode;
mod encode;
mod headers;
mod messages;
mod provider;
mod results;
mod stop;
mod thinking;
mod tools;
mod usage;
mod wire;

pub(crate) use provider::AnthropicMessages;
