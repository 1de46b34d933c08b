//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer, ser::SerializeMap};
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
pub(in super::super) struct Block<'a> {
    #[serde(flatten)]
    pub(in super::super) body: BlockBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) cache_control: Option<CacheControl>,
}

impl<'a> From<BlockBody<'a>> for Block<'a> {
    fn from(body: BlockBody<'a>) -> Self {
        Self { body, cache_control: None }
    }
}

/// What a piece of a message is.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum BlockBody<'a> {
    Text { text: Cow<'a, str> },
    Image { source: ImageSource<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: Cow<'a, str>, name: &'a str, input: &'a Map<String, Value> },
    ToolResult { tool_use_id: Cow<'a, str>, content: ResultContent<'a>, is_error: bool },
}

impl<'a> BlockBody<'a> {
    /// A text; `None` for a blank one, which this API refuses.
    pub(in super::super) fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self::Text { text })
    }

    /// An image.
    pub(in super::super) fn image(image: &'a ImageContent) -> Self {
        let source = ImageSource { kind: "base64", media_type: &image.mime_type, data: &image.data };
        Self::Image { source }
    }
}

#[derive(Debug, Serialize)]
pub(in super::super) struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The content of a tool result; never empty.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<BlockBody<'a>>),
}

/// A piece of the system prompt.
#[derive(Debug, Serialize)]
pub(in super::super) struct SystemBlock<'a> {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    pub(in super::super) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) cache_control: Option<CacheControl>,
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(in super::super) struct Tool<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) description: &'a str,
    pub(in super::super) input_schema: InputSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) eager_input_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) cache_control: Option<CacheControl>,
}

/// The schema of a tool's arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum InputSchema<'a> {
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

/// Asks for the prompt up to here to be cached.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in super::super) struct CacheControl {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) ttl: Option<&'static str>,
}

/// The request body. Empty lists of the system prompt and of tools are left out.
#[derive(Debug)]
pub(in super::super) struct Body<'a> {
    pub(in super::super) model: &'a str,
    pub(in super::super) max_tokens: u64,
    pub(in super::super) system: Vec<SystemBlock<'a>>,
    pub(in super::super) tools: Vec<Tool<'a>>,
    pub(in super::super) messages: Vec<WireMessage<'a>>,
    /// All other fields.
    pub(in super::super) fields: Map<String, Value>,
    /// Fields of the model's configuration, which win over everything.
    pub(in super::super) sampling_params: Map<String, Value>,
}

impl Serialize for Body<'_> {
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
