//! Reasoning records (`reasoning_details`), which some gateways stream in pieces and want back whole.

use serde_json::{Map, Value};

/// The members whose text grows from piece to piece.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// Adds the records of a chunk to those so far, and returns the text in them that can be shown.
///
/// Pieces of one record follow each other and have the same `type` and `index`.
pub(super) fn merge(records: &mut Vec<Value>, news: Value) -> String {
    let Value::Array(news) = news else { return String::new() };
    let mut shown = String::new();
    for piece in news {
        let Value::Object(piece) = piece else { continue };
        for name in ["text", "summary"] {
            shown.push_str(piece.get(name).and_then(Value::as_str).unwrap_or_default());
        }
        match records.last_mut().and_then(Value::as_object_mut) {
            Some(last) if continues(last, &piece) => extend(last, piece),
            _ => records.push(Value::Object(piece)),
        }
    }
    shown
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == piece.get(name);
    let new_id = piece.get("id").is_some_and(|id| !id.is_null() && last.get("id") != Some(id));
    same("type") && same("index") && !new_id
}

fn extend(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&name.as_str()) => {
                text.push_str(&more);
            }
            (Some(_), Value::Null) => {}
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_a_record_are_joined() {
        let mut records = Vec::new();
        let shown = [
            json!([{"type": "reasoning.text", "index": 0, "text": "a", "format": "x"}]),
            json!([{"type": "reasoning.text", "index": 0, "text": "b", "format": null}]),
            json!([{"type": "reasoning.text", "index": 0, "signature": "s"}]),
            json!([{"type": "reasoning.encrypted", "index": 1, "data": "d"}, {"type": "reasoning.summary", "index": 2, "summary": "c"}]),
            json!("odd"),
        ]
        .map(|news| merge(&mut records, news));
        assert_eq!(shown.concat(), "abc");
        assert_eq!(
            Value::Array(records),
            json!([
                {"type": "reasoning.text", "index": 0, "text": "ab", "format": "x", "signature": "s"},
                {"type": "reasoning.encrypted", "index": 1, "data": "d"},
                {"type": "reasoning.summary", "index": 2, "summary": "c"},
            ])
        );
    }
}
