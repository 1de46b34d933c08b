//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// The request body.
#[derive(Debug)]
pub(in super::super) struct Body<'a> {
    pub(in super::super) contents: Vec<Content<'a>>,
    pub(in super::super) system_instruction: Option<Content<'a>>,
    pub(in super::super) tools: Vec<Tool<'a>>,
    pub(in super::super) tool_config: Option<Value>,
    pub(in super::super) generation_config: Map<String, Value>,
    /// Fields of the model's configuration, which win over everything.
    pub(in super::super) configured: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let free = |name: &str| !self.configured.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        if free("contents") {
            map.serialize_entry("contents", &self.contents)?;
        }
        if let Some(instruction) = self.system_instruction.as_ref().filter(|_| free("systemInstruction")) {
            map.serialize_entry("systemInstruction", instruction)?;
        }
        if !self.tools.is_empty() && free("tools") {
            map.serialize_entry("tools", &self.tools)?;
        }
        if let Some(config) = self.tool_config.as_ref().filter(|_| free("toolConfig")) {
            map.serialize_entry("toolConfig", config)?;
        }
        if !self.generation_config.is_empty() {
            map.serialize_entry("generationConfig", &self.generation_config)?;
        }
        for (name, value) in &self.configured {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A turn: `user` (results included) or `model`.
#[derive(Debug, Serialize)]
pub(in super::super) struct Content<'a> {
    pub(in super::super) role: &'static str,
    pub(in super::super) parts: Vec<Part<'a>>,
}

/// A piece of a turn: one of the members besides the signature.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) thought_signature: Option<&'a str>,
}

impl<'a> Part<'a> {
    pub(in super::super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub(in super::super) fn image(image: &'a ImageContent) -> Self {
        Self { inline_data: Some(Blob { mime_type: &image.mime_type, data: &image.data }), ..Self::default() }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct FunctionCall<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) args: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct FunctionResponse<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) id: Option<&'a str>,
}

/// What a tool gave back.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Tool<'a> {
    pub(in super::super) function_declarations: Vec<Declaration<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Declaration<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) description: &'a str,
    pub(in super::super) parameters_json_schema: Cow<'a, Value>,
}
