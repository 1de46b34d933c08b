//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    lenient::{number, string},
    providers::request_parts::{ArgumentsText, DataUrl},
};

/// An item of the input.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum InputItem<'a> {
    /// The system prompt.
    System { role: &'static str, content: &'a str },
    /// A prompt.
    User { role: &'static str, content: Vec<InputPart<'a>> },
    /// Reasoning of an earlier answer, as it came.
    Reasoning(&'a RawValue),
    /// A text of an earlier answer.
    Message(InputMessage<'a>),
    /// A tool call of an earlier answer.
    Call {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        call_id: String,
        name: &'a str,
        arguments: ArgumentsText<'a>,
    },
    /// The result of a tool call.
    Output {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: String,
        output: CallOutput<'a>,
    },
}

impl<'a> InputItem<'a> {
    pub(super) fn user(content: Vec<InputPart<'a>>) -> Self {
        Self::User { role: "user", content }
    }

    pub(super) fn call(
        id: Option<Cow<'a, str>>,
        call_id: String,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> Self {
        Self::Call { kind: "function_call", id, call_id, name, arguments: ArgumentsText(arguments) }
    }

    pub(super) fn output(call_id: String, output: CallOutput<'a>) -> Self {
        Self::Output { kind: "function_call_output", call_id, output }
    }
}

/// A text of an earlier answer.
#[derive(Debug, Serialize)]
pub(super) struct InputMessage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    content: [OutputText<'a>; 1],
    status: &'static str,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
}

impl<'a> InputMessage<'a> {
    pub(super) fn new(text: &'a str, id: String, phase: Option<String>) -> Self {
        let content = [OutputText { kind: "output_text", text, annotations: [] }];
        Self { kind: "message", role: "assistant", content, status: "completed", id, phase }
    }
}

#[derive(Debug, Serialize)]
struct OutputText<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

/// A part of a prompt or of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputPart<'a> {
    InputText { text: &'a str },
    InputImage { detail: &'static str, image_url: DataUrl<'a> },
}

impl<'a> InputPart<'a> {
    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self::InputImage { detail: "auto", image_url: DataUrl(image) }
    }
}

/// The outcome of a tool call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum CallOutput<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    /// `None` leaves the field out, `Some(None)` leaves it to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strict: Option<Option<bool>>,
}

/// The request body.
#[derive(Debug)]
pub(super) struct RequestBody<'a> {
    pub(super) model: &'a str,
    /// The system prompt, if it is not an item of the input.
    pub(super) instructions: Option<&'a str>,
    pub(super) input: Vec<InputItem<'a>>,
    /// Left out if empty.
    pub(super) tools: Vec<Tool<'a>>,
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
        if let Some(instructions) = self.instructions.filter(|_| !configured("instructions")) {
            map.serialize_entry("instructions", instructions)?;
        }
        if !configured("input") {
            map.serialize_entry("input", &self.input)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !configured(name)) {
            map.serialize_entry(name, value)?;
        }
        if !configured("tools") && !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools)?;
        }
        for (name, value) in &self.sampling_params {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Any event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow, deserialize_with = "word")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "number")]
    pub(super) output_index: Option<u64>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) item_id: Option<Cow<'a, str>>,
    /// A piece of text, or of the JSON text of a tool call's arguments.
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    /// The text of a complete part.
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    /// The text of a complete refusal.
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    /// The arguments of a complete call.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// An answer: started, complete, or not streamed at all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow, deserialize_with = "word")]
    pub(super) object: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) service_tier: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "list")]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<&'a RawValue>,
}

/// An item of an answer: a message, reasoning, a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputItem<'a> {
    #[serde(rename = "type", borrow, deserialize_with = "word")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) status: Option<Cow<'a, str>>,
    /// The phase of a message: commentary, or the final answer.
    #[serde(borrow, deserialize_with = "word")]
    pub(super) phase: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    /// The parts of a message, or the reasoning itself.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// The summary of the reasoning, which can be shown.
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
}

/// A part of a message or of reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputPart<'a> {
    #[serde(borrow, deserialize_with = "word")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "word")]
    refusal: Option<Cow<'a, str>>,
}

/// The text of a message that is a refusal; `None` for other items.
pub(super) fn refusal(item: &RawValue) -> Option<String> {
    // Avoids parsing most items twice.
    if !item.get().contains("refusal") {
        return None;
    }
    let item: OutputItem<'_> = serde_json::from_str(item.get()).ok()?;
    let content = item.content.filter(|_| item.kind.as_deref() == Some("message"))?;
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let said =
        parts.into_iter().filter_map(|part| serde_json::from_str::<OutputPart<'_>>(part.get()).ok()?.refusal);
    Some(said.collect::<String>()).filter(|said| !said.is_empty())
}

/// The texts of a list of parts (refusals included), or a text instead of the list; empty for anything else.
pub(super) fn parts(raw: Option<&RawValue>) -> Vec<Cow<'_, str>> {
    let Some(raw) = raw.map(RawValue::get) else { return Vec::new() };
    match raw.as_bytes().first() {
        Some(b'"') => string::<serde_json::Error>(raw).map(Cow::Owned).into_iter().collect(),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            let texts = items.into_iter().filter_map(|item| {
                let part: OutputPart<'_> = serde_json::from_str(item.get()).ok()?;
                part.text.or(part.refusal)
            });
            texts.filter(|text| !text.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// The text of a JSON string; `None` for anything else.
pub(super) fn text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw?.get();
    if raw.starts_with('"') { string::<serde_json::Error>(raw).ok() } else { None }
}

/// The JSON text in a string; an object counts as the JSON itself.
pub(super) fn json_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw?;
    if raw.get().starts_with('{') { Some(raw.get().to_owned()) } else { text(Some(raw)) }
}

/// A string, borrowed if it has no escapes; anything else counts as absent.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Ok(Some(Cow::Borrowed(plain))),
        Some(_) => Ok(Some(Cow::Owned(string(raw)?))),
        None => Ok(None),
    }
}

/// A list; anything else counts as absent.
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
        let event: StreamEvent<'_> =
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
