//! What is received. Servers that imitate this API differ in many small things, so every field is optional and odd
//! values read as absent. One pass over an event is all; only the text of a delta is copied.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::lenient::{json_text, nullable, number, text};

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Event<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(in super::super) kind: &'a str,
    #[serde(deserialize_with = "number")]
    pub(in super::super) index: Option<u64>,
    #[serde(borrow)]
    pub(in super::super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(in super::super) content_block: Option<Block<'a>>,
    #[serde(borrow)]
    pub(in super::super) message: Option<Box<Message<'a>>>,
    pub(in super::super) usage: Option<Box<Usage>>,
    pub(in super::super) stop_details: Option<StopDetails>,
    #[serde(borrow)]
    pub(in super::super) error: Option<&'a RawValue>,
}

/// An answer: empty at the start of a stream, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Message<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(in super::super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(in super::super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) model: Option<String>,
    #[serde(borrow)]
    pub(in super::super) content: Option<Vec<Block<'a>>>,
    pub(in super::super) usage: Option<Box<Usage>>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) stop_reason: Option<String>,
    pub(in super::super) stop_details: Option<StopDetails>,
    #[serde(borrow)]
    pub(in super::super) error: Option<&'a RawValue>,
}

/// A block of the answer, or its beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Block<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(in super::super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(in super::super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) thinking: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) signature: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) data: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) name: Option<String>,
    #[serde(deserialize_with = "json_text")]
    pub(in super::super) input: Option<String>,
}

/// What is added: to a block, or (with the stop reason) to the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Delta<'a> {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(in super::super) kind: &'a str,
    #[serde(deserialize_with = "text")]
    pub(in super::super) text: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) thinking: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) signature: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) partial_json: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(in super::super) stop_reason: Option<String>,
    pub(in super::super) stop_details: Option<StopDetails>,
}

/// Why a model stopped, where the reason alone does not say it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct StopDetails {
    #[serde(deserialize_with = "text")]
    pub(in super::super) explanation: Option<String>,
}

/// Tokens so far; what is absent has not changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Usage {
    #[serde(deserialize_with = "number")]
    pub(in super::super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) cache_creation: CacheCreation,
    #[serde(deserialize_with = "number")]
    pub(in super::super) thinking_tokens: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) output_tokens_details: OutputDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct CacheCreation {
    #[serde(deserialize_with = "number")]
    pub(in super::super) ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct OutputDetails {
    #[serde(deserialize_with = "number")]
    pub(in super::super) thinking_tokens: Option<u64>,
}

/// What a failure says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct ErrorDetails {
    #[serde(rename = "type", deserialize_with = "text")]
    pub(in super::super) kind: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) code: Option<u64>,
}

impl ErrorDetails {
    /// What an `error` member says of itself; nothing where it is no object.
    pub(in super::super) fn of(error: Option<&RawValue>) -> Self {
        error.and_then(|error| serde_json::from_str(error.get()).ok()).unwrap_or_default()
    }
}

/// Whether an `error` member is one.
pub(in super::super) fn is_error(error: Option<&RawValue>) -> bool {
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
        let event: Event<'_> = serde_json::from_str(json).unwrap();
        assert_eq!((event.kind, event.index), ("", Some(3)));
        assert!(event.delta.is_none() && event.message.is_none() && !is_error(event.error));
        let event: Event<'_> = serde_json::from_str(r#"{"type":"\u0061","index":-1,"error":false}"#).unwrap();
        assert_eq!((event.kind, event.index, is_error(event.error)), ("", None, false));
        let message: Message<'_> = serde_json::from_str(r#"{"id":7,"content":null,"usage":{}}"#).unwrap();
        assert!(message.id.is_none() && message.content.is_none());
    }

    #[test]
    fn the_kind_of_a_failure_is_found() {
        let read = |json: &str| {
            let event: Event<'_> = serde_json::from_str(json).unwrap();
            assert!(is_error(event.error), "{json}");
            let details = ErrorDetails::of(event.error);
            (details.kind, details.code)
        };
        assert_eq!(read(r#"{"error":{"type":"api_error"}}"#), (Some("api_error".into()), None));
        assert_eq!(read(r#"{"error":{"code":"429","type":3}}"#), (None, Some(429)));
        assert_eq!(read(r#"{"error":"plain"}"#), (None, None));
    }
}
