//! The types of requests as this API reads them, and of answers as it writes them.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, number, string, text},
    providers::request_parts::{ArgumentsText, DataUrl},
};

/// The request body.
#[derive(Debug)]
pub(super) struct RequestBody<'a> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<ChatMessage<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    /// All other fields.
    pub(super) fields: Map<String, Value>,
    /// Configured fields of the model, which override all others.
    pub(super) configured: Map<String, Value>,
}

impl Serialize for RequestBody<'_> {
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
pub(super) enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        prefix: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<ContentPart<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        name: &'a str,
        content: Vec<ContentPart<'a>>,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
    Thinking { thinking: [TextPart<'a>; 1] },
}

impl<'a> ContentPart<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self::ImageUrl { image_url: DataUrl(image) }
    }

    pub(super) fn thinking(text: &'a str) -> Self {
        Self::Thinking { thinking: [TextPart { kind: "text", text }] }
    }
}

/// A text inside of thinking.
#[derive(Debug, Serialize)]
pub(super) struct TextPart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
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
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    pub(super) strict: bool,
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
    object: Option<String>,
}

impl Chunk {
    /// The error that the chunk reports, if any, with the number that stands for a status. `name`: the event's name; `data`: its whole
    /// text.
    pub(super) fn failure(&self, name: &str, data: &str) -> Option<(Option<u16>, ErrorBody)> {
        let inner = self.error.as_ref().filter(|error| !matches!(error, Value::Null | Value::Bool(false)));
        if inner.is_none() && self.object.as_deref() != Some("error") && name != "error" {
            return None;
        }
        let error = inner.cloned().unwrap_or_else(|| serde_json::from_str(data).unwrap_or_default());
        let code = ["code", "raw_status_code"].into_iter().find_map(|key| {
            let code = error.get(key)?;
            let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
            // The provider also has numbers of its own, which are not statuses.
            u16::try_from(code).ok().filter(|code| (400..600).contains(code))
        });
        let mut body = ErrorBody::of(error);
        if let Ok(Value::Object(error)) = serde_json::from_str(&body.text)
            && let Some(message) =
                error.get("message").and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            message.clone_into(&mut body.text);
        }
        Some((code, body))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(alias = "message", deserialize_with = "nullable")]
    pub(super) delta: ChoiceDelta,
    #[serde(deserialize_with = "text")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChoiceDelta {
    #[serde(deserialize_with = "pieces")]
    pub(super) content: Vec<ContentPiece>,
    #[serde(deserialize_with = "nullable")]
    pub(super) tool_calls: Vec<CallDelta>,
}

/// A piece of content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentPiece {
    Text(String),
    Thinking(String),
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

/// An item of a list of pieces.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentItem {
    #[serde(rename = "type", deserialize_with = "text")]
    kind: Option<String>,
    #[serde(deserialize_with = "text")]
    text: Option<String>,
    #[serde(deserialize_with = "text")]
    thinking: Option<String>,
}

/// A text, or a list of texts and thinking; unknown kinds are skipped.
fn pieces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentPiece>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    match raw.as_bytes().first() {
        Some(b'"') => Ok(vec![ContentPiece::Text(string(raw)?)]),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(D::Error::custom)?;
            items.into_iter().filter_map(|item| piece(item.get()).transpose()).collect()
        }
        _ => Ok(Vec::new()),
    }
}

fn piece<E: serde::de::Error>(raw: &str) -> Result<Option<ContentPiece>, E> {
    match raw.as_bytes().first() {
        Some(b'"') => Ok(Some(ContentPiece::Text(string(raw)?))),
        Some(b'{') => {
            let item: ContentItem = serde_json::from_str(raw).map_err(E::custom)?;
            Ok(match item.kind.as_deref() {
                Some("thinking") => item.thinking.map(ContentPiece::Thinking),
                Some("text") | None => item.text.map(ContentPiece::Text),
                Some(_) => None,
            })
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_in_many_forms() {
        let check = |json: &str, expected: &[ContentPiece]| {
            let delta: ChoiceDelta = serde_json::from_str(&format!(r#"{{"content":{json}}}"#)).unwrap();
            assert_eq!(delta.content, expected, "{json}");
        };
        let text = |text: &str| ContentPiece::Text(text.into());
        let thinking = |text: &str| ContentPiece::Thinking(text.into());
        check(r#""a""#, &[text("a")]);
        check(r#""\ud83d""#, &[text("\u{fffd}")]);
        check("null", &[]);
        check("7", &[]);
        check(
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},"b",
                {"type":"text","text":"c"},{"type":"reference","reference_ids":[1]},{"type":"thinking","thinking":"x"},{"text":"d"}]"#,
            &[thinking("hm"), text("b"), text("c"), thinking("x"), text("d")],
        );
    }
}
