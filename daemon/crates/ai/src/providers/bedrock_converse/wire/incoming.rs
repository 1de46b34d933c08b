//! What is received. Gateways imitate this API, so every field is optional and odd values read as absent. One pass over an
//! event is all; only the text of a delta is copied.

use serde::Deserialize;

use crate::lenient::{json_text, nullable, number, text};

/// One event of a stream: the fields of all kinds of events.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Event {
    #[serde(deserialize_with = "number")]
    pub(in super::super) content_block_index: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) start: Start,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) delta: Delta,
    #[serde(deserialize_with = "text")]
    pub(in super::super) stop_reason: Option<String>,
    pub(in super::super) usage: Option<Usage>,
}

/// How a block begins. Only calls say it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Start {
    pub(in super::super) tool_use: Option<ToolUse>,
}

/// A call, or its beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct ToolUse {
    #[serde(deserialize_with = "text")]
    pub(in super::super) tool_use_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) name: Option<String>,
    /// A piece of the arguments' JSON text, or all of it.
    #[serde(deserialize_with = "json_text")]
    pub(in super::super) input: Option<String>,
}

/// What a block grows by.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Delta {
    #[serde(deserialize_with = "text")]
    pub(in super::super) text: Option<String>,
    pub(in super::super) tool_use: Option<ToolUse>,
    pub(in super::super) reasoning_content: Option<Reasoning>,
}

/// Reasoning: a piece of it in a stream, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Reasoning {
    #[serde(deserialize_with = "text")]
    pub(in super::super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) signature: Option<String>,
    /// Base64.
    #[serde(deserialize_with = "text")]
    pub(in super::super) redacted_content: Option<String>,
    /// The first two, where the answer is not streamed.
    pub(in super::super) reasoning_text: Option<Box<Reasoning>>,
}

/// An answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Whole {
    pub(in super::super) output: Option<Output>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) stop_reason: Option<String>,
    pub(in super::super) usage: Option<Usage>,
}

/// What the model gave.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Output {
    pub(in super::super) message: Message,
}

/// Its message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Message {
    pub(in super::super) content: Vec<Delta>,
}

/// Tokens of the whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Usage {
    #[serde(deserialize_with = "number")]
    pub(in super::super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) cache_write_input_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) cache_details: Vec<CacheDetail>,
}

/// Tokens that were written for a time.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct CacheDetail {
    #[serde(deserialize_with = "text")]
    pub(in super::super) ttl: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) input_tokens: Option<u64>,
}
