//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::providers::json_forms::{Arguments, DataUrl};

/// One message of the request.
#[derive(Debug, Serialize)]
pub(in super::super) struct ChatMessage<'a> {
    pub(in super::super) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) name: Option<&'a str>,
    pub(in super::super) content: Content<'a>,
    #[serde(flatten)]
    pub(in super::super) reasoning: Reasoning<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) tool_calls: Vec<Call<'a>>,
}

impl<'a> ChatMessage<'a> {
    pub(in super::super) fn new(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            tool_call_id: None,
            name: None,
            content,
            reasoning: Reasoning::default(),
            tool_calls: Vec::new(),
        }
    }
}

/// The content of a message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum Content<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

/// A part of a content.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum ContentPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

impl<'a> ContentPart<'a> {
    pub(in super::super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(in super::super) fn image(image: &'a ImageContent) -> Self {
        Self::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } }
    }
}

#[derive(Debug, Serialize)]
pub(in super::super) struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

/// Reasoning sent back: at most one field, whose name the provider chose.
#[derive(Debug, Default)]
pub(in super::super) enum Reasoning<'a> {
    #[default]
    None,
    Text {
        field: &'static str,
        text: Cow<'a, str>,
    },
    Details(Vec<Value>),
}

impl Serialize for Reasoning<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::None => {}
            Self::Text { field, text } => map.serialize_entry(field, text)?,
            Self::Details(details) => map.serialize_entry("reasoning_details", details)?,
        }
        map.end()
    }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct Function<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) description: &'a str,
    pub(in super::super) parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) strict: Option<bool>,
}

/// Asks for the prompt up to here to be cached.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in super::super) struct CacheControl {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) ttl: Option<&'static str>,
}

/// The request body.
#[derive(Debug)]
pub(in super::super) struct Body<'a> {
    pub(in super::super) model: &'a str,
    pub(in super::super) messages: Vec<ChatMessage<'a>>,
    /// `None` leaves the field out.
    pub(in super::super) tools: Option<Vec<Tool<'a>>>,
    /// All other fields.
    pub(in super::super) fields: Map<String, Value>,
    /// Fields of the model's configuration, which win over everything.
    pub(in super::super) sampling_params: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let configured = |name: &str| self.sampling_params.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        if !configured("model") {
            map.serialize_entry("model", self.model)?;
        }
        if !configured("messages") {
            map.serialize_entry("messages", &self.messages)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !configured(name)) {
            map.serialize_entry(name, value)?;
        }
        if let Some(tools) = self.tools.as_ref().filter(|_| !configured("tools")) {
            map.serialize_entry("tools", tools)?;
        }
        for (name, value) in &self.sampling_params {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
