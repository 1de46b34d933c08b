//! What is received. Every field is optional, and odd values read as absent.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, text},
};

/// A chunk of a stream, or a whole answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Chunk {
    #[serde(deserialize_with = "text")]
    pub(in super::super) response_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) model_version: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) candidates: Vec<Candidate>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) prompt_feedback: Feedback,
    pub(in super::super) usage_metadata: Option<Value>,
    pub(in super::super) error: Option<Value>,
}

impl Chunk {
    /// Whether there is nothing of an answer in it.
    pub(in super::super) fn is_foreign(&self) -> bool {
        self.candidates.is_empty()
            && self.prompt_feedback.block_reason.is_none()
            && self.usage_metadata.is_none()
            && self.failure().is_none()
    }

    /// The error that this is: the number given in place of a status, and what it says.
    pub(in super::super) fn failure(&self) -> Option<(Option<u16>, ErrorBody)> {
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

/// What is said of the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Feedback {
    #[serde(deserialize_with = "text")]
    pub(in super::super) block_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) block_reason_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Candidate {
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) content: Content,
    #[serde(deserialize_with = "text")]
    pub(in super::super) finish_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) finish_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Content {
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) parts: Vec<Part>,
}

/// A piece of text or of thinking, or a whole call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in super::super) struct Part {
    #[serde(deserialize_with = "text")]
    pub(in super::super) text: Option<String>,
    pub(in super::super) thought: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) thought_signature: Option<String>,
    pub(in super::super) function_call: Option<FunctionCall>,
}

impl Part {
    pub(in super::super) fn is_thought(&self) -> bool {
        self.thought == Some(Value::Bool(true))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct FunctionCall {
    #[serde(deserialize_with = "text")]
    pub(in super::super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(in super::super) args: Option<String>,
}
