//! The provider APIs, a folder each, and what several of them share.

pub(crate) mod anthropic_messages;
pub(crate) mod azure_openai;
pub(crate) mod bedrock_converse;
pub(crate) mod call_id;
pub(crate) mod google;
pub(crate) mod mistral_conversations;
pub(crate) mod openai_codex;
pub(crate) mod openai_completions;
pub(crate) mod openai_responses;
pub(crate) mod pi_messages;
#[cfg(test)]
mod recorded;
mod request_parts;
pub(crate) mod scripted;
pub(crate) mod strict_schema;
