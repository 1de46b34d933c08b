//! The Converse API of Amazon Bedrock, streamed.

mod blocks;
mod decode;
mod encode;
mod messages;
mod place;
mod provider;
mod stop;
mod thinking;
mod tools;
mod traits;
mod usage;
mod wire;

pub(crate) use provider::BedrockConverse;
