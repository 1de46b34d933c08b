//! The signatures of blocks, with which they are sent back as the items that they were.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest id of an item, in bytes.
const MAX_ID: usize = 64;

/// The signature of a text: the message in which it came.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TextSignature {
    v: u8,
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<String>,
}

impl TextSignature {
    /// The signature as it is stored; `None` for a message without an id.
    pub(super) fn stored(id: Option<&str>, phase: Option<&str>) -> Option<String> {
        let id = id.filter(|id| !id.is_empty())?.to_owned();
        let phase = phase.filter(|phase| !phase.is_empty()).map(str::to_owned);
        // A struct of strings always serialises.
        serde_json::to_string(&Self { v: 1, id, phase }).ok()
    }

    /// Reads a stored signature. Old sessions have a bare id.
    pub(super) fn read(stored: &str) -> Option<Self> {
        let found = if stored.starts_with('{') {
            serde_json::from_str::<Self>(stored).ok().filter(|found| found.v == 1)?
        } else {
            Self { v: 1, id: stored.to_owned(), phase: None }
        };
        let sane = !found.id.is_empty()
            && found.id.len() <= MAX_ID
            && found.id.bytes().all(|b| b.is_ascii_graphic());
        sane.then_some(found)
    }
}

/// Reads the signature of a thinking block: the reasoning item in which it came.
pub(super) fn reasoning_item(stored: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type", borrow)]
        kind: &'a str,
    }
    let head: Head<'_> = serde_json::from_str(stored).ok()?;
    if head.kind != "reasoning" {
        return None;
    }
    serde_json::from_str(stored).ok()
}

/// JSON without white space between its tokens; everything else stays byte for byte.
pub(super) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    // Quotes separate strings from the tokens between them.
    while let Some(start) = rest.find('"') {
        push_tokens(&rest[..start], &mut out);
        let length = string_length(&rest[start..]);
        out.push_str(&rest[start..start + length]);
        rest = &rest[start + length..];
    }
    push_tokens(rest, &mut out);
    out
}

fn push_tokens(tokens: &str, out: &mut String) {
    tokens.split_ascii_whitespace().for_each(|token| out.push_str(token));
}

/// The length of the JSON string that `json` begins with, quotes included.
fn string_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn texts_remember_their_message() {
        let stored = |id, phase| TextSignature::stored(id, phase).unwrap();
        assert_eq!(stored(Some("msg_1"), None), r#"{"v":1,"id":"msg_1"}"#);
        assert_eq!(stored(Some("m"), Some("commentary")), r#"{"v":1,"id":"m","phase":"commentary"}"#);
        assert_eq!(TextSignature::stored(None, None), None);
        assert_eq!(TextSignature::stored(Some(""), Some("x")), None);
    }

    #[test]
    fn stored_signatures_are_read_with_care() {
        let id = |stored: &str| TextSignature::read(stored).map(|found| found.id);
        assert_eq!(id(r#"{"v":1,"id":"msg_1","more":2}"#).unwrap(), "msg_1");
        assert_eq!(id("msg_old").unwrap(), "msg_old");
        for bad in [r#"{"v":2,"id":"m"}"#, r#"{"v":1}"#, "{", "", "two words", &"x".repeat(65)] {
            assert_eq!(id(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_reasoning_items_are_reasoning() {
        let item = r#"{"id":"rs_1","type":"reasoning","n":1.0}"#;
        assert_eq!(reasoning_item(item).unwrap().get(), item);
        for bad in ["reasoning_content", "[]", r#"{"type":"message"}"#, r#"{"type":"reasoning""#] {
            assert!(reasoning_item(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn compact_keeps_strings_and_numbers() {
        assert_eq!(compact("{ \"a b\" : [ 1.0 ,\n\"\\\" \\\\\" ] }\r\n"), r#"{"a b":[1.0,"\" \\"]}"#);
    }

    proptest! {
        #[test]
        fn compact_is_what_a_serialiser_writes(texts in prop::collection::vec(any::<String>(), 0..5)) {
            let value = serde_json::json!({ "a": texts, "b": { "c d": texts.first() } });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&pretty), value.to_string());
            prop_assert!(serde_json::from_str::<Value>(&compact(&pretty)).is_ok());
        }
    }
}
