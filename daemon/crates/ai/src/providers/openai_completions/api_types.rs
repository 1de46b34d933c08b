//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, number, text},
    providers::request_parts::{ArgumentsText, DataUrl},
};

/// One message of the request.
#[derive(Debug, Serialize)]
pub(super) struct ChatMessage<'a> {
    pub(super) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    pub(super) content: Content<'a>,
    #[serde(flatten)]
    pub(super) reasoning: Reasoning<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<Call<'a>>,
}

impl<'a> ChatMessage<'a> {
    pub(super) fn new(role: &'static str, content: Content<'a>) -> Self {
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
pub(super) enum Content<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

/// A part of a message's content.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
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
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

/// Reasoning that is sent back in at most one field, whose name the provider chose.
#[derive(Debug, Default)]
pub(super) enum Reasoning<'a> {
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
pub(super) struct Call<'a> {
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: CallFunction<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct CallFunction<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: ArgumentsText<'a>,
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strict: Option<bool>,
}

/// A cache marker: the provider caches the prompt up to here.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl: Option<&'static str>,
}

/// The request body.
#[derive(Debug)]
pub(super) struct RequestBody<'a> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<ChatMessage<'a>>,
    /// `None` leaves the field out.
    pub(super) tools: Option<Vec<Tool<'a>>>,
    /// All other fields.
    pub(super) fields: Map<String, Value>,
    /// Configured fields of the model, which override all others.
    pub(super) sampling_params: Map<String, Value>,
}

impl Serialize for RequestBody<'_> {
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

/// A chunk of a stream, or a whole answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) object: Option<String>,
}

impl Chunk {
    /// Whether the chunk reports a failure.
    pub(super) fn is_error(&self) -> bool {
        self.object.as_deref() == Some("error")
            || self.error.as_ref().is_some_and(|error| !matches!(error, Value::Null | Value::Bool(false)))
    }

    /// The error that the chunk reports, with the number that stands for a status. `name`: the event's name; `data`: its whole text.
    pub(super) fn failure(&self, name: &str, data: &str) -> Option<(Option<u16>, ErrorBody)> {
        if !self.is_error() && name != "error" {
            return None;
        }
        let whole: Value;
        let error = match &self.error {
            Some(error) if !error.is_null() => error,
            _ => {
                whole = serde_json::from_str(data).unwrap_or_default();
                &whole
            }
        };
        let code = error.get("code").and_then(|code| match code {
            Value::String(code) => code.parse().ok(),
            code => code.as_u64().and_then(|code| u16::try_from(code).ok()),
        });
        let mut body = ErrorBody::of(error.clone());
        if let Some(message) = error.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            message.clone_into(&mut body.text);
        }
        Some((code.filter(|code| (400..600).contains(code)), body))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(alias = "message", deserialize_with = "nullable")]
    pub(super) delta: ChoiceDelta,
    #[serde(deserialize_with = "text")]
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChoiceDelta {
    #[serde(deserialize_with = "text")]
    pub(super) content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) reasoning_content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) reasoning: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) reasoning_text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) refusal: Option<String>,
    pub(super) reasoning_details: Option<Value>,
    #[serde(deserialize_with = "nullable")]
    pub(super) tool_calls: Vec<CallDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallDelta {
    #[serde(deserialize_with = "number")]
    pub(super) index: Option<u64>,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) function: FunctionDelta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionDelta {
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(super) arguments: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(json: &str) -> ChoiceDelta {
        let chunk: Chunk = serde_json::from_str(&format!(r#"{{"choices":[{{"delta":{json}}}]}}"#)).unwrap();
        chunk.choices.into_iter().next().unwrap().delta
    }

    #[test]
    fn odd_values_read_as_absent() {
        let chunk: Chunk =
            serde_json::from_str(r#"{"id":7,"choices":null,"usage":null,"error":null,"x":1}"#).unwrap();
        assert!(
            chunk.id.is_none() && chunk.choices.is_empty() && chunk.usage.is_none() && chunk.error.is_none()
        );
        assert_eq!(delta("null").content, None);
        assert_eq!(delta(r#"{"content":null,"tool_calls":null}"#).tool_calls.len(), 0);
        assert_eq!(
            delta(r#"{"content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]}"#).content.unwrap(),
            "ab"
        );
        assert_eq!(delta(r#"{"content":"\ud83d x"}"#).content.unwrap(), "\u{fffd} x");
    }

    #[test]
    fn arguments_may_be_text_or_an_object() {
        let call = |json: &str| {
            delta(&format!(r#"{{"tool_calls":[{{"index":"1","function":{{"arguments":{json}}}}}]}}"#))
                .tool_calls
                .remove(0)
        };
        assert_eq!(call(r#""{\"a\"""#).function.arguments.unwrap(), r#"{"a""#);
        assert_eq!(call(r#"{"a": 1.0}"#).function.arguments.unwrap(), r#"{"a": 1.0}"#);
        assert_eq!(call("null").function.arguments, None);
        assert_eq!(call("null").index, Some(1));
    }
}
