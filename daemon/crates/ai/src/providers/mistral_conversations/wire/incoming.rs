//! What is received. Every field is optional, and odd values read as absent.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, value::RawValue};

use crate::{
    http::ErrorBody,
    lenient::{json_text, nullable, number, string, text},
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
    object: Option<String>,
}

impl Chunk {
    /// The error that this is, if it is one: the number given in place of a status, and what it says. `name` is the event's
    /// name and `data` its whole text.
    pub(in super::super) fn failure(&self, name: &str, data: &str) -> Option<(Option<u16>, ErrorBody)> {
        let inner = self.error.as_ref().filter(|error| !matches!(error, Value::Null | Value::Bool(false)));
        if inner.is_none() && self.object.as_deref() != Some("error") && name != "error" {
            return None;
        }
        let error = inner.cloned().unwrap_or_else(|| serde_json::from_str(data).unwrap_or_default());
        let code = ["code", "raw_status_code"].into_iter().find_map(|key| {
            let code = error.get(key)?;
            let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
            // The provider has numbers of its own, too.
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
pub(in super::super) struct Choice {
    #[serde(alias = "message", deserialize_with = "nullable")]
    pub(in super::super) delta: Delta,
    #[serde(deserialize_with = "text")]
    pub(in super::super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Delta {
    #[serde(deserialize_with = "pieces")]
    pub(in super::super) content: Vec<Piece>,
    #[serde(deserialize_with = "nullable")]
    pub(in super::super) tool_calls: Vec<CallDelta>,
}

/// A piece of a content.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Piece {
    Text(String),
    Thinking(String),
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

/// An item of a list of pieces.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    #[serde(rename = "type", deserialize_with = "text")]
    kind: Option<String>,
    #[serde(deserialize_with = "text")]
    text: Option<String>,
    #[serde(deserialize_with = "text")]
    thinking: Option<String>,
}

/// A text, or a list of texts and thinking; kinds that this does not know are passed over.
fn pieces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Piece>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    match raw.as_bytes().first() {
        Some(b'"') => Ok(vec![Piece::Text(string(raw)?)]),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(D::Error::custom)?;
            items.into_iter().filter_map(|item| piece(item.get()).transpose()).collect()
        }
        _ => Ok(Vec::new()),
    }
}

fn piece<E: serde::de::Error>(raw: &str) -> Result<Option<Piece>, E> {
    match raw.as_bytes().first() {
        Some(b'"') => Ok(Some(Piece::Text(string(raw)?))),
        Some(b'{') => {
            let item: Item = serde_json::from_str(raw).map_err(E::custom)?;
            Ok(match item.kind.as_deref() {
                Some("thinking") => item.thinking.map(Piece::Thinking),
                Some("text") | None => item.text.map(Piece::Text),
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
        let check = |json: &str, expected: &[Piece]| {
            let delta: Delta = serde_json::from_str(&format!(r#"{{"content":{json}}}"#)).unwrap();
            assert_eq!(delta.content, expected, "{json}");
        };
        let text = |text: &str| Piece::Text(text.into());
        let thinking = |text: &str| Piece::Thinking(text.into());
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
