//! Puts together what servers stream in pieces: tool calls, and reasoning records.

use serde_json::{Map, Value};

use super::api_types::CallDelta;
use crate::providers::call_id::generated_id;

/// The tool calls of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Call {
    /// The server's number of the call.
    number: Option<u64>,
    id: String,
    name: String,
    /// The block in the answer, once it is open.
    pub(super) block: Option<usize>,
    /// Arguments that came before the name.
    waiting: String,
}

/// The effect of a piece of a call.
pub(super) enum CallStep {
    /// The name is known now: open the block of the call, then add the text.
    Open { call: usize, id: String, name: String, arguments: String },
    /// Add the text, which may be empty, to the open block.
    Extend { block: usize, arguments: String },
    /// Wait for more pieces.
    Wait,
}

impl Calls {
    /// Adds a piece. A piece belongs to the call of its `index`, else of its id; without either, to the last call.
    pub(super) fn add(&mut self, piece: CallDelta) -> CallStep {
        let index = self.place(&piece);
        let call = &mut self.calls[index];
        let arguments = piece.function.arguments.unwrap_or_default();
        if let Some(block) = call.block {
            return CallStep::Extend { block, arguments };
        }
        if let Some(id) = piece.id.filter(|id| !id.is_empty()) {
            call.id = id;
        }
        if let Some(name) = piece.function.name {
            call.name = name;
        }
        call.waiting.push_str(&arguments);
        if call.name.is_empty() {
            return CallStep::Wait;
        }
        call.open(index)
    }

    /// Notes the block of a call.
    pub(super) fn opened(&mut self, call: usize, block: usize) {
        if let Some(call) = self.calls.get_mut(call) {
            call.block = Some(block);
        }
    }

    /// Opens the calls that never got a name, so that nothing is lost.
    pub(super) fn nameless(&mut self) -> Vec<CallStep> {
        let waiting = self.calls.iter_mut().enumerate().filter(|(_, call)| call.block.is_none());
        waiting.map(|(index, call)| call.open(index)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The index of the call that a piece belongs to, which may be a new one.
    fn place(&mut self, piece: &CallDelta) -> usize {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let named = piece.function.name.as_deref().is_some_and(|name| !name.is_empty());
        let found = match (piece.index, id) {
            // Some servers give every call the same index: a new id with a name starts another call.
            (Some(number), id) => self.calls.iter().rposition(|call| {
                call.number == Some(number)
                    && !(named && id.is_some_and(|id| !call.id.is_empty() && call.id != id))
            }),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Call { number: piece.index, ..Call::default() });
            self.calls.len() - 1
        })
    }
}

impl Call {
    fn open(&mut self, index: usize) -> CallStep {
        if self.id.is_empty() {
            self.id = generated_id();
        }
        CallStep::Open {
            call: index,
            id: self.id.clone(),
            name: self.name.clone(),
            arguments: std::mem::take(&mut self.waiting),
        }
    }
}

/// The members whose text is spread over the pieces.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// Adds the reasoning records (`reasoning_details`) of a chunk to those so far, and returns their readable text. Gateways that stream such
/// records want them back whole.
///
/// The pieces of one record are consecutive and have the same `type` and `index`.
pub(super) fn merge_reasoning_records(records: &mut Vec<Value>, news: Value) -> String {
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
        .map(|news| merge_reasoning_records(&mut records, news));
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
