//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::Serialize;
use serde_json::{Map, Value};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Role {
    User,
    Assistant,
}

/// One message of the request.
#[derive(Debug, Serialize)]
pub(in super::super) struct WireMessage<'a> {
    pub(in super::super) role: Role,
    /// Never empty.
    pub(in super::super) content: Vec<Block<'a>>,
}

/// A piece of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(in super::super) enum Block<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    ReasoningContent(Reasoning<'a>),
    ToolUse { tool_use_id: Cow<'a, str>, name: &'a str, input: Cow<'a, Map<String, Value>> },
    ToolResult { tool_use_id: Cow<'a, str>, content: Vec<ResultBlock<'a>>, status: Status },
    CachePoint(CachePoint),
}

/// A piece of a tool's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) enum ResultBlock<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
}

/// How a tool's call went.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Status {
    Success,
    Error,
}

/// Reasoning of an earlier answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) enum Reasoning<'a> {
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
pub(in super::super) struct Image<'a> {
    format: &'static str,
    source: ImageBytes<'a>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct ImageBytes<'a> {
    /// Base64.
    bytes: &'a str,
}

impl<'a> Image<'a> {
    /// An image; `None` for one of a kind that this API does not take.
    pub(in super::super) fn of(image: &'a ImageContent) -> Option<Self> {
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

/// Asks for the prompt up to here to be cached.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in super::super) struct CachePoint {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) ttl: Option<&'static str>,
}

/// A piece of the system prompt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) enum SystemBlock<'a> {
    Text(&'a str),
    CachePoint(CachePoint),
}

/// The tools that the model can call; never empty.
#[derive(Debug, Serialize)]
pub(in super::super) struct ToolConfig<'a> {
    pub(in super::super) tools: Vec<Tool<'a>>,
}

/// A tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Tool<'a> {
    pub(in super::super) tool_spec: ToolSpec<'a>,
}

/// What a tool is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ToolSpec<'a> {
    pub(in super::super) name: &'a str,
    /// Never empty: this API refuses an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) description: Option<&'a str>,
    pub(in super::super) input_schema: InputSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) strict: Option<bool>,
}

/// The schema of a tool's arguments.
#[derive(Debug, Serialize)]
pub(in super::super) struct InputSchema<'a> {
    pub(in super::super) json: Cow<'a, Value>,
}

/// The request body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Body<'a> {
    pub(in super::super) messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) system: Vec<SystemBlock<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(in super::super) inference_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(in super::super) additional_model_request_fields: Map<String, Value>,
    /// Configured fields of the request itself; none of the names above.
    #[serde(flatten)]
    pub(in super::super) others: Map<String, Value>,
}
