//! What is received. Servers that imitate this API differ in many small things, so every field is optional and odd
//! values read as absent. Nothing is copied before it is known to be needed.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::lenient::{number, string};

/// Any event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Event<'a> {
    #[serde(rename = "type", borrow, deserialize_with = "word")]
    pub(in super::super) kind: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "number")]
    pub(in super::super) output_index: Option<u64>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) item_id: Option<Cow<'a, str>>,
    /// A piece of text, or of the JSON text of a tool call's arguments.
    #[serde(borrow)]
    pub(in super::super) delta: Option<&'a RawValue>,
    /// The text of a part that is complete.
    #[serde(borrow)]
    pub(in super::super) text: Option<&'a RawValue>,
    /// The text of a refusal that is complete.
    #[serde(borrow)]
    pub(in super::super) refusal: Option<&'a RawValue>,
    /// The arguments of a call that is complete.
    #[serde(borrow)]
    pub(in super::super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in super::super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in super::super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in super::super) error: Option<&'a RawValue>,
}

/// An answer: begun, complete, or not streamed at all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Response<'a> {
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) object: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) model: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) status: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) service_tier: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "list")]
    pub(in super::super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(in super::super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in super::super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in super::super) incomplete_details: Option<&'a RawValue>,
}

/// A part of an answer: a message, a piece of reasoning, a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Item<'a> {
    #[serde(rename = "type", borrow, deserialize_with = "word")]
    pub(in super::super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) status: Option<Cow<'a, str>>,
    /// Of a message: whether it is an aside or the answer itself.
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) phase: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(in super::super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(in super::super) arguments: Option<&'a RawValue>,
    /// The parts of a message, or the reasoning itself.
    #[serde(borrow)]
    pub(in super::super) content: Option<&'a RawValue>,
    /// What is shown of the reasoning.
    #[serde(borrow)]
    pub(in super::super) summary: Option<&'a RawValue>,
}

/// A part of a message or of reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, deserialize_with = "word")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    refusal: Option<Cow<'a, str>>,
}

/// What a message says as its refusal, where it is one; `None` for other items.
pub(in super::super) fn refusal(item: &RawValue) -> Option<String> {
    // Most items are not read twice.
    if !item.get().contains("refusal") {
        return None;
    }
    let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
    let content = item.content.filter(|_| item.kind.as_deref() == Some("message"))?;
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let said =
        parts.into_iter().filter_map(|part| serde_json::from_str::<Part<'_>>(part.get()).ok()?.refusal);
    Some(said.collect::<String>()).filter(|said| !said.is_empty())
}

/// The texts of a list of parts (refusals are text too), or a text in the place of the list; empty for anything else.
pub(in super::super) fn parts(raw: Option<&RawValue>) -> Vec<Cow<'_, str>> {
    let Some(raw) = raw.map(RawValue::get) else { return Vec::new() };
    match raw.as_bytes().first() {
        Some(b'"') => string::<serde_json::Error>(raw).map(Cow::Owned).into_iter().collect(),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            let texts = items.into_iter().filter_map(|item| {
                let part: Part<'_> = serde_json::from_str(item.get()).ok()?;
                part.text.or(part.refusal)
            });
            texts.filter(|text| !text.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// The text of a JSON string; `None` for anything else.
pub(in super::super) fn text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw?.get();
    if raw.starts_with('"') { string::<serde_json::Error>(raw).ok() } else { None }
}

/// The JSON text in a string; an object in its place is taken for the JSON itself.
pub(in super::super) fn json_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw?;
    if raw.get().starts_with('{') { Some(raw.get().to_owned()) } else { text(Some(raw)) }
}

/// A string, borrowed where it has no escapes; anything else is absent.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Ok(Some(Cow::Borrowed(plain))),
        Some(_) => Ok(Some(Cow::Owned(string(raw)?))),
        None => Ok(None),
    }
}

/// A list; anything else is absent.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<&'de RawValue>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    if !raw.starts_with('[') {
        return Ok(None);
    }
    serde_json::from_str(raw).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_read_as_absent() {
        let event: Event<'_> =
            serde_json::from_str(r#"{"type":7,"output_index":"2","item_id":null,"delta":null,"x":[1]}"#)
                .unwrap();
        assert!(event.kind.is_none() && event.item_id.is_none() && event.delta.is_none());
        assert_eq!(event.output_index, Some(2));
        let response: Response<'_> =
            serde_json::from_str(r#"{"id":"a\u0062","output":{},"usage":null,"error":null}"#).unwrap();
        assert_eq!(response.id.as_deref(), Some("ab"));
        assert!(response.output.is_none() && response.usage.is_none() && response.error.is_none());
    }

    fn check_parts(json: &str, expected: &[&str]) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        assert_eq!(parts(Some(raw)), expected, "{json}");
    }

    #[test]
    fn parts_are_texts_and_refusals() {
        check_parts(
            r#"[{"type":"output_text","text":"a\n"},{"type":"refusal","refusal":"b"},{"text":""},{"x":1},7]"#,
            &["a\n", "b"],
        );
        check_parts(r#""all""#, &["all"]);
        check_parts("null", &[]);
        check_parts("{}", &[]);
    }

    #[test]
    fn arguments_may_be_text_or_an_object() {
        let raw = |json| -> &RawValue { serde_json::from_str(json).unwrap() };
        assert_eq!(json_text(Some(raw(r#""{\"a\":1}""#))).unwrap(), r#"{"a":1}"#);
        assert_eq!(json_text(Some(raw(r#"{"a": 1.0}"#))).unwrap(), r#"{"a": 1.0}"#);
        assert_eq!(json_text(Some(raw("7"))), None);
        assert_eq!(text(Some(raw(r#""\ud83d x""#))).unwrap(), "\u{fffd} x");
        assert_eq!(text(Some(raw("{}"))), None);
    }
}
