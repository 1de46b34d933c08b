//! Tracks the blocks of an answer. Only tool calls have a start event; text and reasoning start with their first piece.

use std::collections::HashMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::api_types::{BlockDelta, BlockStart, ReasoningDelta, ToolUseDelta};
use crate::{BlockKind, BlockSeal, Delta, providers::call_id::generated_id};

/// Stands for withheld reasoning (the text is pi's).
const REDACTED: &str = "[Reasoning redacted]";

/// The blocks of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Blocks {
    /// The open block of each of the server's numbers.
    numbers: HashMap<u64, usize>,
    /// The blocks in the order of opening.
    blocks: Vec<Block>,
    /// The first block that may not be sealed yet.
    unsealed: usize,
    /// A call whose block has ended, unsealed until the answer goes on: at the output limit its arguments may be cut.
    ended_call: Option<usize>,
    has_calls: bool,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Block {
    kind: Kind,
    is_sealed: bool,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Kind {
    Text,
    Thinking {
        signature: String,
    },
    /// Withheld reasoning as bytes: pieces in Base64 cannot be joined as they are.
    Redacted {
        data: Vec<u8>,
    },
    Call,
}

impl Blocks {
    /// Whether the model made calls.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Starts a block.
    pub(super) fn start(&mut self, number: u64, start: BlockStart, out: &mut Vec<Delta>) {
        self.stop(number, out);
        if let Some(call) = start.tool_use {
            self.call(number, call, out);
        }
    }

    /// Extends a block.
    pub(super) fn extend(&mut self, number: u64, delta: BlockDelta, out: &mut Vec<Delta>) {
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            let index = self.at(number, &|kind| matches!(kind, Kind::Text), &|| Kind::Text, out);
            out.push(Delta::Extend { index, delta: text });
        }
        if let Some(reasoning) = delta.reasoning_content {
            self.reason(number, reasoning, out);
        }
        if let Some(input) = delta.tool_use.and_then(|call| call.input).filter(|input| !input.is_empty()) {
            self.settle_call(out);
            let index = self.numbers.get(&number).copied();
            // Arguments without the start of their call are dropped.
            if let Some(index) = index.filter(|index| self.is(*index, &|kind| matches!(kind, Kind::Call))) {
                out.push(Delta::Extend { index, delta: input });
            }
        }
    }

    /// Ends a block.
    pub(super) fn stop(&mut self, number: u64, out: &mut Vec<Delta>) {
        self.settle_call(out);
        let Some(index) = self.numbers.remove(&number) else { return };
        if self.is(index, &|kind| matches!(kind, Kind::Call)) {
            self.ended_call = Some(index);
        } else {
            self.seal_one(index, false, out);
        }
    }

    /// Takes a whole block of an answer that was not streamed.
    pub(super) fn whole(&mut self, number: u64, mut block: BlockDelta, out: &mut Vec<Delta>) {
        if let Some(mut call) = block.tool_use.take() {
            let input = call.input.take();
            self.start(number, BlockStart { tool_use: Some(call) }, out);
            block.tool_use = Some(ToolUseDelta { input, ..ToolUseDelta::default() });
        }
        self.extend(number, block, out);
        self.stop(number, out);
    }

    /// Seals the open blocks, in the order of the content. `incomplete`: the answer broke off.
    pub(super) fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.ended_call = None;
        for index in self.unsealed..self.blocks.len() {
            self.seal_one(index, incomplete, out);
        }
    }

    fn call(&mut self, number: u64, call: ToolUseDelta, out: &mut Vec<Delta>) {
        self.settle_call(out);
        self.has_calls = true;
        let id = call.tool_use_id.filter(|id| !id.is_empty()).unwrap_or_else(generated_id);
        let name = call.name.unwrap_or_default();
        let index = self.open(number, Kind::Call, BlockKind::ToolCall { id, name }, out);
        if let Some(delta) = call.input.filter(|input| !input.is_empty()) {
            out.push(Delta::Extend { index, delta });
        }
    }

    fn reason(&mut self, number: u64, reasoning: ReasoningDelta, out: &mut Vec<Delta>) {
        if let Some(whole) = reasoning.reasoning_text {
            self.reason(number, *whole, out);
        }
        if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
            let is_redacted = |kind: &Kind| matches!(kind, Kind::Redacted { .. });
            let begins = !self.numbers.get(&number).is_some_and(|index| self.is(*index, &is_redacted));
            let index = self.at(number, &is_redacted, &|| Kind::Redacted { data: Vec::new() }, out);
            if begins {
                out.push(Delta::Extend { index, delta: REDACTED.to_owned() });
            }
            if let Some(Block { kind: Kind::Redacted { data: all }, .. }) = self.blocks.get_mut(index) {
                match STANDARD.decode(&data) {
                    Ok(bytes) => all.extend_from_slice(&bytes),
                    Err(error) => {
                        tracing::debug!(%error, "withheld reasoning that is no Base64 is left out");
                    }
                }
            }
        }
        let text = reasoning.text.filter(|text| !text.is_empty());
        let signed = reasoning.signature.filter(|signed| !signed.is_empty());
        if text.is_none() && signed.is_none() {
            return;
        }
        let is_thinking = |kind: &Kind| matches!(kind, Kind::Thinking { .. });
        let index = self.at(number, &is_thinking, &|| Kind::Thinking { signature: String::new() }, out);
        if let Some(delta) = text {
            out.push(Delta::Extend { index, delta });
        }
        if let (Some(signed), Some(Block { kind: Kind::Thinking { signature }, .. })) =
            (signed, self.blocks.get_mut(index))
        {
            signature.push_str(&signed);
        }
    }

    /// The open block of a number if it has the kind of the piece, else a new block.
    fn at(
        &mut self,
        number: u64,
        fits: &dyn Fn(&Kind) -> bool,
        new: &dyn Fn() -> Kind,
        out: &mut Vec<Delta>,
    ) -> usize {
        self.settle_call(out);
        if let Some(index) = self.numbers.get(&number).copied()
            && self.is(index, fits)
        {
            return index;
        }
        self.stop(number, out);
        self.settle_call(out);
        let kind = new();
        let block = if matches!(kind, Kind::Text) { BlockKind::Text } else { BlockKind::Thinking };
        self.open(number, kind, block, out)
    }

    fn is(&self, index: usize, fits: &dyn Fn(&Kind) -> bool) -> bool {
        self.blocks.get(index).is_some_and(|block| !block.is_sealed && fits(&block.kind))
    }

    /// Seals the call that has ended: the answer goes on, so its arguments are whole.
    fn settle_call(&mut self, out: &mut Vec<Delta>) {
        if let Some(index) = self.ended_call.take() {
            self.seal_one(index, false, out);
        }
    }

    fn open(&mut self, number: u64, kind: Kind, block: BlockKind, out: &mut Vec<Delta>) -> usize {
        let index = self.blocks.len();
        self.blocks.push(Block { kind, is_sealed: false });
        self.numbers.insert(number, index);
        out.push(Delta::Open { index, kind: block });
        index
    }

    fn seal_one(&mut self, index: usize, incomplete: bool, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.get_mut(index).filter(|block| !block.is_sealed) else { return };
        block.is_sealed = true;
        let mut seal = BlockSeal { incomplete, ..BlockSeal::default() };
        match &mut block.kind {
            Kind::Text | Kind::Call => {}
            // A part of a signature is worthless.
            Kind::Thinking { signature } => {
                seal.signature =
                    Some(std::mem::take(signature)).filter(|whole| !whole.is_empty() && !incomplete);
            }
            Kind::Redacted { data } => {
                seal.redacted = true;
                seal.signature = Some(STANDARD.encode(data)).filter(|data| !data.is_empty() && !incomplete);
            }
        }
        out.push(Delta::Seal { index, seal });
        while self.blocks.get(self.unsealed).is_some_and(|block| block.is_sealed) {
            self.unsealed += 1;
        }
    }
}
