//! What is received. Servers that imitate this API differ in many small things, so every field is optional and odd
//! values read as absent.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, number, text},
};

/// A chunk of a stream, or a whole answer that was not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Chunk {
    #[serde(deserialize_with = "text")]
    pub(in super::super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) choices: Vec<Choice>,
    pub(in super::super) usage: Option<Value>,
    pub(in super::super) error: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) object: Option<String>,
}

impl Chunk {
    /// Whether the server says that it failed.
    pub(in super::super) fn is_error(&self) -> bool {
        self.object.as_deref() == Some("error")
            || self.error.as_ref().is_some_and(|error| !matches!(error, Value::Null | Value::Bool(false)))
    }

    /// The error that this is: the number given in place of a status, and what it says. `name` is the event's name and
    /// `data` its whole text.
    pub(in super::super) fn failure(&self, name: &str, data: &str) -> Option<(Option<u16>, ErrorBody)> {
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
pub(in super::super) struct Choice {
    #[serde(alias = "message", deserialize_with = "nullable")]
    pub(in super::super) delta: Delta,
    #[serde(deserialize_with = "text")]
    pub(in super::super) finish_reason: Option<String>,
    pub(in super::super) usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Delta {
    #[serde(deserialize_with = "text")]
    pub(in super::super) content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) reasoning_content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) reasoning: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) reasoning_text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) refusal: Option<String>,
    pub(in super::super) reasoning_details: Option<Value>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) tool_calls: Vec<CallDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct CallDelta {
    #[serde(deserialize_with = "number")]
    pub(in super::super) index: Option<u64>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) id: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) function: FunctionDelta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct FunctionDelta {
    #[serde(deserialize_with = "text")]
    pub(in super::super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(in super::super) arguments: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(json: &str) -> Delta {
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
