//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{json_text, nullable, number, text};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

/// One message of the request.
#[derive(Debug, Serialize)]
pub(super) struct ApiMessage<'a> {
    pub(super) role: Role,
    /// Never empty.
    pub(super) content: Vec<MessageBlock<'a>>,
}

/// A content block of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum MessageBlock<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    ReasoningContent(Reasoning<'a>),
    ToolUse { tool_use_id: Cow<'a, str>, name: &'a str, input: Cow<'a, Map<String, Value>> },
    ToolResult { tool_use_id: Cow<'a, str>, content: Vec<ResultBlock<'a>>, status: Status },
    CachePoint(CachePoint),
}

/// A content block of a tool result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ResultBlock<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
}

/// The status of a tool call.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Success,
    Error,
}

/// Reasoning of an earlier answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    /// Base64.
    RedactedContent(&'a str),
}

/// An image.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Image<'a> {
    format: &'static str,
    source: ImageBytes<'a>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct ImageBytes<'a> {
    /// Base64.
    bytes: &'a str,
}

impl<'a> Image<'a> {
    /// An image; `None` for a type that this API does not accept.
    pub(super) fn of(image: &'a ImageContent) -> Option<Self> {
        let format = match image.mime_type.as_str() {
            "image/png" => "png",
            "image/jpeg" | "image/jpg" => "jpeg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            _ => return None,
        };
        Some(Self { format, source: ImageBytes { bytes: &image.data } })
    }
}

/// A cache marker: the provider caches the prompt up to here.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl: Option<&'static str>,
}

/// A piece of the system prompt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SystemBlock<'a> {
    Text(&'a str),
    CachePoint(CachePoint),
}

/// The tools that the model can call; never empty.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub(super) tools: Vec<Tool<'a>>,
    /// The tool that has to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
}

/// A tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    pub(super) tool_spec: ToolSpec<'a>,
}

/// The description of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolSpec<'a> {
    pub(super) name: &'a str,
    /// Absent if empty: this API refuses an empty description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<&'a str>,
    pub(super) input_schema: InputSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strict: Option<bool>,
}

/// The schema of a tool's arguments.
#[derive(Debug, Serialize)]
pub(super) struct InputSchema<'a> {
    pub(super) json: Cow<'a, Value>,
}

/// The request body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestBody<'a> {
    pub(super) messages: Vec<ApiMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<SystemBlock<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) inference_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) additional_model_request_fields: Map<String, Value>,
    /// Configured fields of the request itself; none of the names above.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

/// One event of a stream, with the fields of all kinds of events.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StreamEvent {
    #[serde(deserialize_with = "number")]
    pub(super) content_block_index: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(super) start: BlockStart,
    #[serde(deserialize_with = "nullable")]
    pub(super) delta: BlockDelta,
    #[serde(deserialize_with = "text")]
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<UsageReport>,
}

/// The start of a block. Only tool calls have one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BlockStart {
    pub(super) tool_use: Option<ToolUseDelta>,
}

/// A tool call, or its start.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolUseDelta {
    #[serde(deserialize_with = "text")]
    pub(super) tool_use_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    /// A piece of the arguments' JSON text, or all of it.
    #[serde(deserialize_with = "json_text")]
    pub(super) input: Option<String>,
}

/// An addition to a block.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BlockDelta {
    #[serde(deserialize_with = "text")]
    pub(super) text: Option<String>,
    pub(super) tool_use: Option<ToolUseDelta>,
    pub(super) reasoning_content: Option<ReasoningDelta>,
}

/// Reasoning: a piece of it in a stream, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReasoningDelta {
    #[serde(deserialize_with = "text")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) signature: Option<String>,
    /// Base64.
    #[serde(deserialize_with = "text")]
    pub(super) redacted_content: Option<String>,
    /// Text and signature, in an answer that is not streamed.
    pub(super) reasoning_text: Option<Box<ReasoningDelta>>,
}

/// An answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WholeAnswer {
    pub(super) output: Option<WholeOutput>,
    #[serde(deserialize_with = "text")]
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<UsageReport>,
}

/// The output of the model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WholeOutput {
    pub(super) message: WholeMessage,
}

/// The message of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WholeMessage {
    pub(super) content: Vec<BlockDelta>,
}

/// Token counts of the whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct UsageReport {
    #[serde(deserialize_with = "number")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) cache_write_input_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(super) cache_details: Vec<CacheDetail>,
}

/// Tokens that were written to the cache for a given time.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CacheDetail {
    #[serde(deserialize_with = "text")]
    pub(super) ttl: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(super) input_tokens: Option<u64>,
}
