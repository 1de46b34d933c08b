//! What the events of this API mean.

use agentd_protocol::message::StopReason;
use serde::de::Error as _;

use super::{
    calls::{Calls, Step as CallStep},
    usage::usage,
    wire::incoming::{Chunk, Piece},
};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{Server, Step, Wire},
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reader {
    server: Server,
    /// The model asked for.
    model: String,
    id: Option<String>,
    has_model: bool,
    /// Whether each block is still open.
    blocks: Vec<bool>,
    /// The text or the thinking that grows.
    current: Option<(usize, BlockKind)>,
    calls: Calls,
    finish_reason: Option<String>,
}

impl Reader {
    /// A reader for an answer of `server`, asked for `model`.
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

    fn chunk(&mut self, chunk: Chunk, name: &str, data: &str, out: &mut Vec<Delta>) -> Step {
        if let Some((status, body)) = chunk.failure(name, data) {
            return Step::failed(self.server.refusal(status, &body));
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
        // Only one answer is asked for.
        let Some(choice) = chunk.choices.into_iter().next() else { return Step::More };
        for piece in choice.delta.content {
            match piece {
                Piece::Text(text) => self.grow(BlockKind::Text, text, out),
                Piece::Thinking(text) => self.grow(BlockKind::Thinking, text, out),
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
        Step::More
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

    /// Seals the text or the thinking that grows.
    fn close(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        if let Some((index, _)) = self.current.take() {
            self.blocks[index] = false;
            out.push(Delta::Seal { index, seal: BlockSeal { incomplete, ..BlockSeal::default() } });
        }
    }
}

impl Wire for Reader {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let chunk = serde_json::from_str(data)?;
        Ok(self.chunk(chunk, name, data, out))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let chunk: Chunk = serde_json::from_str(json)?;
        if chunk.choices.is_empty() && chunk.failure("", json).is_none() {
            return Err(serde_json::Error::custom("no choices"));
        }
        Ok(match self.chunk(chunk, "", json, out) {
            Step::More => self.end(out),
            step => step,
        })
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Step {
        let raw_stop_reason = self.finish_reason.clone();
        let stop_reason = match raw_stop_reason.as_deref() {
            None => {
                let text = "Mistral's stream ended without a finish reason";
                return Step::failed(Failure::new(FailureKind::Retryable, text));
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
                return Step::Failed { failure, raw_stop_reason };
            }
        };
        Step::Done { stop_reason, raw_stop_reason }
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

#[cfg(test)]
mod tests;
