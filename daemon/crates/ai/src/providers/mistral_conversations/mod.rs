//! Mistral's chat completions: like OpenAI's, but with thinking as parts of contents, and with ids of nine characters.

mod call_id;
mod calls;
mod decode;
mod encode;
mod messages;
mod provider;
mod usage;
mod wire;

pub(crate) use provider::MistralConversations;
