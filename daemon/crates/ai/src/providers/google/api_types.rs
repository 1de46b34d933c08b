//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, text},
};

/// The request body.
#[derive(Debug)]
pub(super) struct RequestBody<'a> {
    pub(super) contents: Vec<Content<'a>>,
    pub(super) system_instruction: Option<Content<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) tool_config: Option<Value>,
    pub(super) generation_config: Map<String, Value>,
    /// Configured fields of the model, which override all others.
    pub(super) configured: Map<String, Value>,
}

impl Serialize for RequestBody<'_> {
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
pub(super) struct Content<'a> {
    pub(super) role: &'static str,
    pub(super) parts: Vec<ContentPart<'a>>,
}

/// A part of a turn: exactly one of the members besides the signature.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

impl<'a> ContentPart<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self { inline_data: Some(Blob { mime_type: &image.mime_type, data: &image.data }), ..Self::default() }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCall<'a> {
    pub(super) name: &'a str,
    pub(super) args: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionResponse<'a> {
    pub(super) name: &'a str,
    pub(super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<ContentPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
}

/// The outcome of a tool call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    pub(super) function_declarations: Vec<Declaration<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters_json_schema: Cow<'a, Value>,
}

/// A chunk of a stream, or a whole answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk {
    #[serde(deserialize_with = "text")]
    pub(super) response_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) model_version: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) candidates: Vec<Candidate>,
    #[serde(deserialize_with = "nullable")]
    pub(super) prompt_feedback: Feedback,
    pub(super) usage_metadata: Option<Value>,
    pub(super) error: Option<Value>,
}

impl Chunk {
    /// Whether the chunk holds nothing of an answer.
    pub(super) fn is_foreign(&self) -> bool {
        self.candidates.is_empty()
            && self.prompt_feedback.block_reason.is_none()
            && self.usage_metadata.is_none()
            && self.failure().is_none()
    }

    /// The error that the chunk reports, with the number that stands for a status.
    pub(super) fn failure(&self) -> Option<(Option<u16>, ErrorBody)> {
        let error = self.error.as_ref().filter(|error| !matches!(error, Value::Null | Value::Bool(false)))?;
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let mut body = ErrorBody::of(error.clone());
        let given = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(message) = given("message") {
            message.clone_into(&mut body.text);
        }
        body.kind = given("status").map(str::to_owned).or(body.kind);
        Some((code.filter(|code| (400..600).contains(code)), body))
    }
}

/// Feedback about the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback {
    #[serde(deserialize_with = "text")]
    pub(super) block_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) block_reason_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(deserialize_with = "nullable")]
    pub(super) content: CandidateContent,
    #[serde(deserialize_with = "text")]
    pub(super) finish_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) finish_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CandidateContent {
    #[serde(deserialize_with = "nullable")]
    pub(super) parts: Vec<CandidatePart>,
}

/// A piece of text or thinking, or a whole tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CandidatePart {
    #[serde(deserialize_with = "text")]
    pub(super) text: Option<String>,
    pub(super) thought: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<CandidateCall>,
}

impl CandidatePart {
    pub(super) fn is_thought(&self) -> bool {
        self.thought == Some(Value::Bool(true))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CandidateCall {
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(super) args: Option<String>,
}
