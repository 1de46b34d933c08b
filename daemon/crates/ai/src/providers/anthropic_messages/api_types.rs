//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

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
#[derive(Debug)]
pub(super) struct MessageBlock<'a> {
    pub(super) body: MessageBlockBody<'a>,
    pub(super) cache_control: Option<CacheControl>,
}

impl<'a> From<MessageBlockBody<'a>> for MessageBlock<'a> {
    fn from(body: MessageBlockBody<'a>) -> Self {
        Self { body, cache_control: None }
    }
}

/// The kinds of content blocks.
#[derive(Debug)]
pub(super) enum MessageBlockBody<'a> {
    Text { text: Cow<'a, str> },
    Image { source: ImageSource<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: Cow<'a, str>, name: &'a str, input: &'a Map<String, Value> },
    ToolResult { tool_use_id: Cow<'a, str>, content: ResultContent<'a>, is_error: bool },
}

// By hand: a request has a block for each message of its session, and a derived `flatten` takes half as long again.
impl Serialize for MessageBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.body.members(&mut map)?;
        if let Some(control) = &self.cache_control {
            map.serialize_entry("cache_control", control)?;
        }
        map.end()
    }
}

impl Serialize for MessageBlockBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.members(&mut map)?;
        map.end()
    }
}

impl<'a> MessageBlockBody<'a> {
    fn members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Text { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)
            }
            Self::Image { source } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", source)
            }
            Self::Thinking { thinking, signature } => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", thinking)?;
                map.serialize_entry("signature", signature)
            }
            Self::RedactedThinking { data } => {
                map.serialize_entry("type", "redacted_thinking")?;
                map.serialize_entry("data", data)
            }
            Self::ToolUse { id, name, input } => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)
            }
            Self::ToolResult { tool_use_id, content, is_error } => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", tool_use_id)?;
                map.serialize_entry("content", content)?;
                map.serialize_entry("is_error", is_error)
            }
        }
    }

    /// A text; `None` for a blank one, which this API refuses.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self::Text { text })
    }

    /// An image.
    pub(super) fn image(image: &'a ImageContent) -> Self {
        let source = ImageSource { kind: "base64", media_type: &image.mime_type, data: &image.data };
        Self::Image { source }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The content of a tool result; never empty.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<MessageBlockBody<'a>>),
}

/// A piece of the system prompt.
#[derive(Debug, Serialize)]
pub(super) struct SystemBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) input_schema: InputSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eager_input_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

/// The schema of a tool's arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum InputSchema<'a> {
    Plain {
        #[serde(rename = "type")]
        kind: &'static str,
        properties: Cow<'a, Value>,
        required: Cow<'a, Value>,
        #[serde(rename = "$defs", skip_serializing_if = "Option::is_none")]
        defs: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        definitions: Option<&'a Value>,
    },
    Strict(Value),
}

/// A cache marker: the provider caches the prompt up to here.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl: Option<&'static str>,
}

/// The request body. Empty lists of the system prompt and of tools are left out.
#[derive(Debug)]
pub(super) struct RequestBody<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u64,
    pub(super) system: Vec<SystemBlock<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) messages: Vec<ApiMessage<'a>>,
    /// All other fields.
    pub(super) fields: Map<String, Value>,
    /// Configured fields of the model, which override all others.
    pub(super) sampling_params: Map<String, Value>,
}

impl Serialize for RequestBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ours = |name: &str| !self.sampling_params.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        if ours("model") {
            map.serialize_entry("model", self.model)?;
        }
        if ours("max_tokens") {
            map.serialize_entry("max_tokens", &self.max_tokens)?;
        }
        if ours("stream") {
            map.serialize_entry("stream", &true)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| ours(name)) {
            map.serialize_entry(name, value)?;
        }
        if !self.system.is_empty() && ours("system") {
            map.serialize_entry("system", &self.system)?;
        }
        if !self.tools.is_empty() && ours("tools") {
            map.serialize_entry("tools", &self.tools)?;
        }
        if ours("messages") {
            map.serialize_entry("messages", &self.messages)?;
        }
        for (name, value) in &self.sampling_params {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(super) kind: &'a str,
    #[serde(deserialize_with = "number")]
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<BlockDelta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<StreamBlock<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Box<AnswerMessage<'a>>>,
    pub(super) usage: Option<Box<UsageReport>>,
    pub(super) stop_details: Option<StopDetails>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// An answer: empty at the start of a stream, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerMessage<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) model: Option<String>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<StreamBlock<'a>>>,
    pub(super) usage: Option<Box<UsageReport>>,
    #[serde(deserialize_with = "text")]
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A block of the answer, or its beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamBlock<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) thinking: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) signature: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) data: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(super) input: Option<String>,
}

/// An addition to a block, or (with the stop reason) to the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockDelta<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) thinking: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) signature: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) partial_json: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

/// The provider's explanation of a stop reason.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails {
    #[serde(deserialize_with = "text")]
    pub(super) explanation: Option<String>,
}

/// Token counts so far; an absent count has not changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageReport {
    #[serde(deserialize_with = "number")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(super) cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(super) cache_creation: CacheCreation,
    #[serde(deserialize_with = "number")]
    pub(super) thinking_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(super) output_tokens_details: OutputDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheCreation {
    #[serde(deserialize_with = "number")]
    pub(super) ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    #[serde(deserialize_with = "number")]
    pub(super) thinking_tokens: Option<u64>,
}

/// The details of a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorDetails {
    #[serde(rename = "type", deserialize_with = "text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(super) code: Option<u64>,
}

impl ErrorDetails {
    /// The details of an `error` member; empty if it is not an object.
    pub(super) fn of(error: Option<&RawValue>) -> Self {
        error.and_then(|error| serde_json::from_str(error.get()).ok()).unwrap_or_default()
    }
}

/// Whether an `error` member reports an error.
pub(super) fn is_error(error: Option<&RawValue>) -> bool {
    error.is_some_and(|error| !matches!(error.get(), "null" | "false"))
}

/// A plain word of the API; empty for anything else. Words have no escapes, so nothing is copied.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    Ok(inner.filter(|word| !word.contains('\\')).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_read_as_absent() {
        let json = r#"{"type":null,"index":"3","delta":null,"content_block":null,"message":null,"usage":null,"error":null}"#;
        let event: StreamEvent<'_> = serde_json::from_str(json).unwrap();
        assert_eq!((event.kind, event.index), ("", Some(3)));
        assert!(event.delta.is_none() && event.message.is_none() && !is_error(event.error));
        let event: StreamEvent<'_> =
            serde_json::from_str(r#"{"type":"\u0061","index":-1,"error":false}"#).unwrap();
        assert_eq!((event.kind, event.index, is_error(event.error)), ("", None, false));
        let message: AnswerMessage<'_> =
            serde_json::from_str(r#"{"id":7,"content":null,"usage":{}}"#).unwrap();
        assert!(message.id.is_none() && message.content.is_none());
    }

    #[test]
    fn the_kind_of_a_failure_is_found() {
        let read = |json: &str| {
            let event: StreamEvent<'_> = serde_json::from_str(json).unwrap();
            assert!(is_error(event.error), "{json}");
            let details = ErrorDetails::of(event.error);
            (details.kind, details.code)
        };
        assert_eq!(read(r#"{"error":{"type":"api_error"}}"#), (Some("api_error".into()), None));
        assert_eq!(read(r#"{"error":{"code":"429","type":3}}"#), (None, Some(429)));
        assert_eq!(read(r#"{"error":"plain"}"#), (None, None));
    }
}
