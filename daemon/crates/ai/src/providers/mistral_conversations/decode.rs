//! Decodes answers of this API: events and token counts.

use agentd_protocol::message::{StopReason, Usage};
use serde::de::Error as _;
use serde_json::Value;

use super::{
    api_types::{CallDelta, Chunk, ContentPiece},
    messages::of_place,
};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{AnswerDecoder, DecodeStep, Server},
};

/// Decodes one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ConversationsDecoder {
    server: Server,
    /// The requested model.
    model: String,
    id: Option<String>,
    has_model: bool,
    /// Whether each block is still open.
    blocks: Vec<bool>,
    /// The open block of text or thinking.
    current: Option<(usize, BlockKind)>,
    calls: Calls,
    finish_reason: Option<String>,
}

impl ConversationsDecoder {
    /// A decoder for an answer of `server` by `model`.
    pub(super) fn new(server: Server, model: &str) -> Self {
        Self {
            server,
            model: model.to_owned(),
            id: None,
            has_model: false,
            blocks: Vec::new(),
            current: None,
            calls: Calls::default(),
            finish_reason: None,
        }
    }

    fn chunk(&mut self, chunk: Chunk, name: &str, data: &str, out: &mut Vec<Delta>) -> DecodeStep {
        if let Some((status, body)) = chunk.failure(name, data) {
            return DecodeStep::failed(self.server.refusal(status, &body));
        }
        if let Some(id) = chunk.id.filter(|id| !id.is_empty() && self.id.is_none()) {
            self.id = Some(id.clone());
            out.push(Delta::ResponseId(id));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty() && !self.has_model) {
            self.has_model = true;
            if model != self.model {
                out.push(Delta::ResponseModel(model));
            }
        }
        out.extend(chunk.usage.as_ref().and_then(usage).map(Delta::Usage));
        // A request asks for one candidate only.
        let Some(choice) = chunk.choices.into_iter().next() else { return DecodeStep::More };
        for piece in choice.delta.content {
            match piece {
                ContentPiece::Text(text) => self.grow(BlockKind::Text, text, out),
                ContentPiece::Thinking(text) => self.grow(BlockKind::Thinking, text, out),
            }
        }
        for piece in choice.delta.tool_calls {
            self.close(false, out);
            let step = self.calls.add(piece, self.id.as_deref().unwrap_or_default());
            self.call(step, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason);
        }
        DecodeStep::More
    }

    fn grow(&mut self, kind: BlockKind, text: String, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        let index = match &self.current {
            Some((index, current)) if *current == kind => *index,
            _ => {
                self.close(false, out);
                let index = self.open(kind.clone(), out);
                self.current = Some((index, kind));
                index
            }
        };
        out.push(Delta::Extend { index, delta: text });
    }

    fn call(&mut self, step: CallStep, out: &mut Vec<Delta>) {
        match step {
            CallStep::Open { call, id, name, arguments } => {
                let index = self.open(BlockKind::ToolCall { id, name }, out);
                self.calls.opened(call, index);
                out.push(Delta::Extend { index, delta: arguments });
            }
            CallStep::Extend { block, arguments } => {
                out.push(Delta::Extend { index: block, delta: arguments });
            }
            CallStep::Wait => {}
        }
    }

    fn open(&mut self, kind: BlockKind, out: &mut Vec<Delta>) -> usize {
        let index = self.blocks.len();
        self.blocks.push(true);
        out.push(Delta::Open { index, kind });
        index
    }

    /// Seals the open block of text or thinking.
    fn close(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        if let Some((index, _)) = self.current.take() {
            self.blocks[index] = false;
            out.push(Delta::Seal { index, seal: BlockSeal { incomplete, ..BlockSeal::default() } });
        }
    }
}

impl AnswerDecoder for ConversationsDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<DecodeStep, serde_json::Error> {
        let chunk = serde_json::from_str(data)?;
        Ok(self.chunk(chunk, name, data, out))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<DecodeStep, serde_json::Error> {
        let chunk: Chunk = serde_json::from_str(json)?;
        if chunk.choices.is_empty() && chunk.failure("", json).is_none() {
            return Err(serde_json::Error::custom("no choices"));
        }
        Ok(match self.chunk(chunk, "", json, out) {
            DecodeStep::More => self.end(out),
            step => step,
        })
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> DecodeStep {
        let raw_stop_reason = self.finish_reason.clone();
        let stop_reason = match raw_stop_reason.as_deref() {
            None => {
                let text = "Mistral's stream ended without a finish reason";
                return DecodeStep::failed(Failure::new(FailureKind::Retryable, text));
            }
            Some("stop") if !self.calls.is_empty() => StopReason::ToolUse,
            Some("stop") => StopReason::Stop,
            Some("length" | "model_length") => StopReason::Length,
            Some("tool_calls") => StopReason::ToolUse,
            Some(other) => {
                let words = if other == "error" { " (server error)" } else { "" };
                let text = format!("Provider stopped with: {other}{words}");
                let kind = if is_refusal(other) {
                    FailureKind::ModelRefusal
                } else {
                    classify_message(&self.server.provider, &text)
                };
                let failure = self.server.failure(kind, text);
                return DecodeStep::Failed { failure, raw_stop_reason };
            }
        };
        DecodeStep::Done { stop_reason, raw_stop_reason }
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        for step in self.calls.nameless(self.id.as_deref().unwrap_or_default()) {
            self.call(step, out);
        }
        self.current = None;
        for (index, is_open) in self.blocks.iter_mut().enumerate() {
            if std::mem::take(is_open) {
                out.push(Delta::Seal { index, seal: BlockSeal { incomplete, ..BlockSeal::default() } });
            }
        }
    }

    fn has_all_content(&self) -> bool {
        self.finish_reason.is_some()
    }
}

/// The tool calls of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct Call {
    /// The server's number of the call.
    number: Option<u64>,
    id: String,
    name: String,
    block: Option<usize>,
    /// Arguments that came before the name.
    waiting: String,
}

/// The effect of a piece of a call.
pub(super) enum CallStep {
    /// The name is known now: open the block of the call, then add the text.
    Open { call: usize, id: String, name: String, arguments: String },
    /// Add the text to the open block.
    Extend { block: usize, arguments: String },
    /// Wait for more pieces.
    Wait,
}

impl Calls {
    /// Adds a piece of an answer with the id `answer`. A piece belongs to the call of its number and id; without either, to the last call.
    pub(super) fn add(&mut self, piece: CallDelta, answer: &str) -> CallStep {
        // The API writes "null" for a missing id.
        let id = piece.id.filter(|id| !id.is_empty() && id != "null");
        let name = piece.function.name.filter(|name| !name.is_empty());
        let arguments = piece.function.arguments.unwrap_or_default();
        let place = self.place(piece.index, id.as_deref(), name.is_some());
        let call = &mut self.calls[place];
        if let Some(block) = call.block {
            return CallStep::Extend { block, arguments };
        }
        call.id = id.unwrap_or_else(|| std::mem::take(&mut call.id));
        call.name = name.unwrap_or_else(|| std::mem::take(&mut call.name));
        call.waiting.push_str(&arguments);
        if call.name.is_empty() { CallStep::Wait } else { self.open(place, answer) }
    }

    /// Notes the block of a call.
    pub(super) fn opened(&mut self, call: usize, block: usize) {
        if let Some(call) = self.calls.get_mut(call) {
            call.block = Some(block);
        }
    }

    /// Opens the calls that never got a name, so that nothing is lost.
    pub(super) fn nameless(&mut self, answer: &str) -> Vec<CallStep> {
        let waiting: Vec<usize> =
            (0..self.calls.len()).filter(|place| self.calls[*place].block.is_none()).collect();
        waiting.into_iter().map(|place| self.open(place, answer)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    fn open(&mut self, place: usize, answer: &str) -> CallStep {
        let call = &mut self.calls[place];
        if call.id.is_empty() {
            call.id = of_place(answer, place);
        }
        CallStep::Open {
            call: place,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: std::mem::take(&mut call.waiting),
        }
    }

    /// The index of the call that a piece belongs to, which may be a new one.
    fn place(&mut self, number: Option<u64>, id: Option<&str>, is_named: bool) -> usize {
        let found = match (number, id) {
            // Whole calls may all have the same number: a new id with a name starts another call.
            (Some(_), id) => self.calls.iter().rposition(|call| {
                let is_other = is_named && id.is_some_and(|id| !call.id.is_empty() && call.id != id);
                call.number == number && !is_other
            }),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) if is_named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Call { number, ..Call::default() });
            self.calls.len() - 1
        })
    }
}

/// Reads a usage report; `None` if the value is not one.
pub(super) fn usage(report: &Value) -> Option<Usage> {
    report.is_object().then_some(())?;
    let count = |value: &Value| value.as_u64();
    let prompt = count(&report["prompt_tokens"]).unwrap_or(0);
    let output = count(&report["completion_tokens"]).unwrap_or(0);
    let cached = count(&report["prompt_tokens_details"]["cached_tokens"])
        .or_else(|| count(&report["prompt_token_details"]["cached_tokens"]))
        .or_else(|| count(&report["num_cached_tokens"]));
    let cache_read = cached.unwrap_or(0).min(prompt);
    Some(Usage {
        input: prompt - cache_read,
        output,
        cache_read,
        reasoning: count(&report["completion_tokens_details"]["reasoning_tokens"]),
        total_tokens: count(&report["total_tokens"]).unwrap_or_else(|| prompt.saturating_add(output)),
        ..Usage::default()
    })
}

#[cfg(test)]
mod usage_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_no_input() {
        let check = |report: Value, expected: [u64; 4]| {
            let found = usage(&report).unwrap();
            assert_eq!(
                [found.input, found.output, found.cache_read, found.total_tokens],
                expected,
                "{report}"
            );
        };
        check(json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}), [10, 5, 0, 15]);
        for cached in [
            json!({"prompt_tokens_details": {"cached_tokens": 4}}),
            json!({"prompt_token_details": {"cached_tokens": 4}}),
            json!({"num_cached_tokens": 4, "prompt_tokens_details": null}),
        ] {
            let mut report = json!({"prompt_tokens": 10, "completion_tokens": 5});
            report.as_object_mut().unwrap().extend(cached.as_object().unwrap().clone());
            check(report, [6, 5, 4, 15]);
        }
        check(json!({"prompt_tokens": 3, "num_cached_tokens": 9}), [0, 0, 3, 3]);
        assert_eq!(usage(&Value::Null), None);
    }
}

#[cfg(test)]
mod tests;
