//! Tracks the blocks of an answer of the chat completions API, and its token counts.

use agentd_protocol::message::{Cost, Usage};
use serde_json::Value;

use super::{
    api_types::{Choice, ChoiceDelta as ChunkDelta, Chunk},
    messages::REASONING_FIELDS,
    pieces::{CallStep, Calls, merge_reasoning_records},
};
use crate::{BlockKind, BlockSeal, Delta, failure::Refusal};

/// The state of an answer after the chunks so far.
#[cfg_attr(test, derive(Clone))]
pub(super) struct AnswerState {
    /// The requested model.
    model: String,
    reports_cost: bool,
    has_id: bool,
    has_model: bool,
    /// The blocks in the order of opening.
    blocks: Vec<Kind>,
    text: Option<usize>,
    thinking: Option<usize>,
    /// The field in which reasoning came.
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

    /// The model's refusal, which may be empty.
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
        // A request asks for one candidate only.
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

    /// Seals all blocks, in the order of the content. `incomplete`: the answer broke off.
    pub(super) fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        for step in self.calls.nameless() {
            self.step(step, out);
        }
        for (index, kind) in self.blocks.iter().enumerate() {
            let signature = if *kind == Kind::Thinking { self.signature() } else { None };
            out.push(Delta::Seal { index, seal: BlockSeal { signature, redacted: false, incomplete } });
        }
    }

    /// The signature with which reasoning is sent back: the provider's records, or the name of the field.
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

/// Reads a usage report; `None` if the value is not one. `reports_cost`: its `cost` is the cost that is paid.
fn usage(report: &Value, reports_cost: bool) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |value: Option<&Value>| {
        let value = value?;
        // Some servers count in floats.
        value.as_u64().or_else(|| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64))
    };
    let top = |name: &str| number(report.get(name));
    let detail = |group: &str, name: &str| number(report.get(group)?.get(name));
    let prompt = top("prompt_tokens").unwrap_or(0);
    let output = top("completion_tokens").unwrap_or(0);
    let cache_read = detail("prompt_tokens_details", "cached_tokens")
        .or_else(|| top("prompt_cache_hit_tokens"))
        .or_else(|| top("cached_tokens"))
        .unwrap_or(0)
        .min(prompt);
    let cache_write =
        detail("prompt_tokens_details", "cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
    let cost = report.get("cost").and_then(Value::as_f64).filter(|_| reports_cost);
    Some(Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        cache_write1h: None,
        reasoning: Some(detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0)),
        total_tokens: prompt.saturating_add(output),
        cost: match cost {
            Some(total) => Cost { total, total_from_provider: Some(true), ..Cost::default() },
            None => Cost::default(),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(report: Value, expected: (u64, u64, u64, u64, u64, u64)) {
        let found = usage(&report, false).unwrap();
        let parts = (found.input, found.output, found.cache_read, found.cache_write);
        assert_eq!(
            (parts.0, parts.1, parts.2, parts.3, found.reasoning.unwrap(), found.total_tokens),
            expected
        );
    }

    #[test]
    fn cached_tokens_are_no_input() {
        check(json!({"prompt_tokens": 100, "completion_tokens": 20}), (100, 20, 0, 0, 0, 120));
        check(
            json!({"prompt_tokens": 50, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 1}}),
            (35, 2, 10, 5, 1, 52),
        );
        check(json!({"prompt_tokens": 50, "prompt_cache_hit_tokens": 20}), (30, 0, 20, 0, 0, 50));
        check(json!({"prompt_tokens": 50.0, "cached_tokens": 60}), (0, 0, 50, 0, 0, 50));
        check(json!({"prompt_tokens": 5, "prompt_tokens_details": null}), (5, 0, 0, 0, 0, 5));
    }

    #[test]
    fn a_reported_cost_counts_where_it_is_what_is_paid() {
        let report = json!({"prompt_tokens": 1, "cost": 0.25});
        let cost = usage(&report, true).unwrap().cost;
        assert_eq!((cost.total, cost.total_from_provider), (0.25, Some(true)));
        assert_eq!(usage(&report, false).unwrap().cost, Cost::default());
        assert_eq!(usage(&Value::Null, true), None);
    }
}
