//! The answer as it grows: which blocks are open, and what is known of them.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::{Map, Value};

use super::{
    api_types::{CallDelta, Choice, ChoiceDelta as ChunkDelta, Chunk},
    decode::usage,
    messages::REASONING_FIELDS,
};
use crate::{BlockKind, BlockSeal, Delta, failure::Refusal};

/// What the chunks so far add up to.
#[cfg_attr(test, derive(Clone))]
pub(super) struct AnswerState {
    /// The model asked for.
    model: String,
    reports_cost: bool,
    has_id: bool,
    has_model: bool,
    /// The blocks in the order of opening.
    blocks: Vec<Kind>,
    text: Option<usize>,
    thinking: Option<usize>,
    /// The field that reasoning came in.
    reasoning_field: Option<&'static str>,
    details: Vec<Value>,
    calls: Calls,
    finish_reason: Option<String>,
    refusal: Refusal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl AnswerState {
    pub(super) fn new(model: &str, reports_cost: bool) -> Self {
        Self {
            model: model.to_owned(),
            reports_cost,
            has_id: false,
            has_model: false,
            blocks: Vec::new(),
            text: None,
            thinking: None,
            reasoning_field: None,
            details: Vec::new(),
            calls: Calls::default(),
            finish_reason: None,
            refusal: Refusal::default(),
        }
    }

    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    /// The model's refusal, which may be none.
    pub(super) fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes a chunk.
    pub(super) fn take(&mut self, chunk: Chunk, out: &mut Vec<Delta>) {
        if let Some(id) = chunk.id.filter(|id| !id.is_empty() && !self.has_id) {
            self.has_id = true;
            out.push(Delta::ResponseId(id));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty() && !self.has_model) {
            self.has_model = true;
            if model != self.model {
                out.push(Delta::ResponseModel(model));
            }
        }
        // Only one answer is asked for.
        let choice = chunk.choices.into_iter().next();
        let report = chunk.usage.as_ref().filter(|usage| usage.is_object());
        let report = report.or_else(|| choice.as_ref()?.usage.as_ref());
        if let Some(usage) = report.and_then(|report| usage(report, self.reports_cost)) {
            out.push(Delta::Usage(usage));
        }
        if let Some(choice) = choice {
            self.choice(choice, out);
        }
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<Delta>) {
        let ChunkDelta { content, refusal, tool_calls, reasoning_details, .. } = choice.delta;
        let ChunkDelta { reasoning_content, reasoning, reasoning_text, .. } = choice.delta;
        let given = |text: &String| !text.is_empty();
        let reasoning = REASONING_FIELDS
            .into_iter()
            .zip([reasoning_content, reasoning, reasoning_text])
            .find_map(|(field, text)| text.filter(given).map(|text| (field, text)));
        let shown = reasoning_details.map(|news| merge_reasoning_records(&mut self.details, news));
        if let Some((field, text)) = reasoning {
            self.reasoning_field.get_or_insert(field);
            self.think(text, out);
        } else if let Some(text) = shown.filter(|_| !self.details.is_empty()) {
            self.think(text, out);
        }
        self.refusal.add(refusal.as_deref().unwrap_or_default());
        for delta in [content, refusal].into_iter().flatten().filter(given) {
            let index = match self.text {
                Some(index) => index,
                None => *self.text.insert(open(&mut self.blocks, Kind::Text, BlockKind::Text, out)),
            };
            out.push(Delta::Extend { index, delta });
        }
        for piece in tool_calls {
            let step = self.calls.add(piece);
            self.step(step, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason);
        }
    }

    fn think(&mut self, text: String, out: &mut Vec<Delta>) {
        let index = match self.thinking {
            Some(index) => index,
            None => *self.thinking.insert(open(&mut self.blocks, Kind::Thinking, BlockKind::Thinking, out)),
        };
        if !text.is_empty() {
            out.push(Delta::Extend { index, delta: text });
        }
    }

    fn step(&mut self, step: CallStep, out: &mut Vec<Delta>) {
        match step {
            CallStep::Open { call, id, name, arguments } => {
                let index = open(&mut self.blocks, Kind::Call, BlockKind::ToolCall { id, name }, out);
                self.calls.opened(call, index);
                out.push(Delta::Extend { index, delta: arguments });
            }
            CallStep::Extend { block, arguments } => {
                out.push(Delta::Extend { index: block, delta: arguments })
            }
            CallStep::Wait => {}
        }
    }

    /// Seals every block, in the order of the content. `incomplete` says that the answer broke off.
    pub(super) fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        for step in self.calls.nameless() {
            self.step(step, out);
        }
        for (index, kind) in self.blocks.iter().enumerate() {
            let signature = if *kind == Kind::Thinking { self.signature() } else { None };
            out.push(Delta::Seal { index, seal: BlockSeal { signature, redacted: false, incomplete } });
        }
    }

    /// What has to be known to send the reasoning back: the provider's records, or the name of the field.
    fn signature(&self) -> Option<String> {
        if self.details.is_empty() {
            return self.reasoning_field.map(str::to_owned);
        }
        serde_json::to_string(&self.details).ok()
    }
}

fn open(blocks: &mut Vec<Kind>, kind: Kind, block: BlockKind, out: &mut Vec<Delta>) -> usize {
    let index = blocks.len();
    blocks.push(kind);
    out.push(Delta::Open { index, kind: block });
    index
}

/// The tool calls of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Call {
    /// What the server numbers it by.
    number: Option<u64>,
    id: String,
    name: String,
    /// The block in the answer, once it is open.
    pub(super) block: Option<usize>,
    /// ArgumentsText that came before the name.
    waiting: String,
}

/// What a piece of a call means.
pub(super) enum CallStep {
    /// The call is known now: open its block, then add the text.
    Open { call: usize, id: String, name: String, arguments: String },
    /// The arguments of an open block grow, perhaps by nothing.
    Extend { block: usize, arguments: String },
    /// Nothing can be said yet.
    Wait,
}

impl Calls {
    /// Adds a piece. Pieces belong together by `index`, then by id; without either, to the last call.
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

    /// Says which block a call became.
    pub(super) fn opened(&mut self, call: usize, block: usize) {
        if let Some(call) = self.calls.get_mut(call) {
            call.block = Some(block);
        }
    }

    /// Opens what never got a name, so that nothing the model said is lost.
    pub(super) fn nameless(&mut self) -> Vec<CallStep> {
        let waiting = self.calls.iter_mut().enumerate().filter(|(_, call)| call.block.is_none());
        waiting.map(|(index, call)| call.open(index)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call that a piece belongs to; made if it is a new one.
    fn place(&mut self, piece: &CallDelta) -> usize {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let named = piece.function.name.as_deref().is_some_and(|name| !name.is_empty());
        let found = match (piece.index, id) {
            // Some servers give every call the same index; a new id with a name tells them apart.
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

/// An id for a call that the server gave none: ids must differ over a whole session.
fn generated_id() -> String {
    // Each `RandomState` has random keys, which is all the randomness this needs.
    format!("call_{:016x}", RandomState::new().build_hasher().finish())
}

/// The members whose text grows from piece to piece.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// Adds the records of a chunk to those so far, and returns the text in them that can be shown.
///
/// Pieces of one record follow each other and have the same `type` and `index`.
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
