//! The chat completions API of OpenAI, and of the many servers that imitate it.

mod cache;
mod call_id;
mod calls;
mod compat;
mod decode;
mod details;
mod encode;
mod headers;
mod messages;
mod provider;
mod state;
mod thinking;
mod usage;
mod wire;

pub(crate) use provider::OpenAiCompletions;
