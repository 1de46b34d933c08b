//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::providers::json_forms::{Arguments, DataUrl};

/// The request body.
#[derive(Debug)]
pub(in super::super) struct Body<'a> {
    pub(in super::super) model: &'a str,
    pub(in super::super) messages: Vec<ChatMessage<'a>>,
    pub(in super::super) tools: Vec<Tool<'a>>,
    /// All other fields.
    pub(in super::super) fields: Map<String, Value>,
    /// Fields of the model's configuration, which win over everything.
    pub(in super::super) configured: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let free = |name: &str| !self.configured.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        if free("model") {
            map.serialize_entry("model", self.model)?;
        }
        if free("messages") {
            map.serialize_entry("messages", &self.messages)?;
        }
        if !self.tools.is_empty() && free("tools") {
            map.serialize_entry("tools", &self.tools)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| free(name)) {
            map.serialize_entry(name, value)?;
        }
        for (name, value) in &self.configured {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// One message of the request.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(in super::super) enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        prefix: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        name: &'a str,
        content: Vec<Part<'a>>,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
    Thinking { thinking: [TextPart<'a>; 1] },
}

impl<'a> Part<'a> {
    pub(in super::super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    pub(in super::super) fn image(image: &'a ImageContent) -> Self {
        Self::ImageUrl { image_url: DataUrl(image) }
    }

    pub(in super::super) fn thinking(text: &'a str) -> Self {
        Self::Thinking { thinking: [TextPart { kind: "text", text }] }
    }
}

/// A text inside of thinking.
#[derive(Debug, Serialize)]
pub(in super::super) struct TextPart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// A tool call of an earlier answer.
#[derive(Debug, Serialize)]
pub(in super::super) struct Call<'a> {
    pub(in super::super) id: Cow<'a, str>,
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    pub(in super::super) function: CallFunction<'a>,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct CallFunction<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) arguments: Arguments<'a>,
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(in super::super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    pub(in super::super) function: Function<'a>,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct Function<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) description: &'a str,
    pub(in super::super) parameters: Cow<'a, Value>,
    pub(in super::super) strict: bool,
}
