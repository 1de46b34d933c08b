//! The provider APIs, a folder each, and what several of them share.
//!
//! An adapter turns a request into headers and a body, and bytes into deltas. Shared parts are written once: `http/exchange.rs` sends,
//! repeats what got no answer, and hands the body on; `http/sse.rs` splits events at any byte boundary; `http/decoder.rs` feeds them to the
//! adapter's decoder and makes every end a defined one; `partial_json.rs` reads unfinished arguments; `handoff.rs` rewrites a transcript
//! for another model and knows no API. Keys are resolved for each request, so that a renewed key counts at once.

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
