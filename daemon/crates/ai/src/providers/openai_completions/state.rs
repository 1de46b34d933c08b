//! The answer as it grows: which blocks are open, and what is known of them.

use serde_json::Value;

use super::{
    calls::{Calls, Step},
    details,
    messages::REASONING_FIELDS,
    usage::usage,
    wire::incoming::{Choice, Chunk, Delta as ChunkDelta},
};
use crate::{BlockKind, BlockSeal, Delta, failure::Refusal};

/// What the chunks so far add up to.
#[cfg_attr(test, derive(Clone))]
pub(super) struct State {
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

impl State {
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
        let shown = reasoning_details.map(|news| details::merge(&mut self.details, news));
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

    fn step(&mut self, step: Step, out: &mut Vec<Delta>) {
        match step {
            Step::Open { call, id, name, arguments } => {
                let index = open(&mut self.blocks, Kind::Call, BlockKind::ToolCall { id, name }, out);
                self.calls.opened(call, index);
                out.push(Delta::Extend { index, delta: arguments });
            }
            Step::Extend { block, arguments } => out.push(Delta::Extend { index: block, delta: arguments }),
            Step::Wait => {}
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
