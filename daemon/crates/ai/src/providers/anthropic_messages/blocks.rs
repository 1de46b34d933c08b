//! Tracks the blocks of an answer, which the server opens, extends and ends in any order.

use std::collections::HashMap;

use super::api_types::{BlockDelta, StreamBlock};
use crate::{BlockKind, BlockSeal, Delta, providers::call_id::generated_id};

/// Stands for withheld reasoning (the text is pi's).
const REDACTED: &str = "[Reasoning redacted]";

/// The blocks of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Blocks {
    /// The block of each of the server's numbers; `None` for a block that is left out or complete.
    numbers: HashMap<u64, Option<usize>>,
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
    Redacted {
        data: Option<String>,
    },
    /// `given`: arguments that came with the start of the block, used if no others come.
    Call {
        given: Option<String>,
    },
}

impl Blocks {
    /// Whether the model made calls.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Starts a block, perhaps with content already.
    pub(super) fn start(&mut self, number: u64, start: StreamBlock<'_>, out: &mut Vec<Delta>) {
        // A server that gives every block the same number may not end them either.
        self.stop(number, out);
        self.settle_call(out);
        let opened = match start.kind {
            "text" => Some((Kind::Text, BlockKind::Text, start.text)),
            "thinking" => {
                let signature = start.signature.unwrap_or_default();
                Some((Kind::Thinking { signature }, BlockKind::Thinking, start.thinking))
            }
            "redacted_thinking" => {
                let data = start.data.filter(|data| !data.is_empty());
                Some((Kind::Redacted { data }, BlockKind::Thinking, Some(REDACTED.to_owned())))
            }
            "tool_use" => {
                self.has_calls = true;
                let given = start.input.filter(|input| !is_empty_object(input));
                let id = start.id.filter(|id| !id.is_empty()).unwrap_or_else(generated_id);
                let name = start.name.unwrap_or_default();
                Some((Kind::Call { given }, BlockKind::ToolCall { id, name }, None))
            }
            // Blocks of the provider's own tools (searches, for instance) are left out.
            _ => None,
        };
        let Some((kind, block, text)) = opened else {
            self.numbers.insert(number, None);
            return;
        };
        let index = self.open(number, kind, block, out);
        if let Some(delta) = text.filter(|text| !text.is_empty()) {
            out.push(Delta::Extend { index, delta });
        }
    }

    /// Extends a block.
    pub(super) fn extend(&mut self, number: u64, delta: BlockDelta<'_>, out: &mut Vec<Delta>) {
        self.settle_call(out);
        let index = match self.numbers.get(&number) {
            Some(Some(index)) => *index,
            Some(None) => return,
            // The server left out the start of the block.
            None => match delta.kind {
                "text_delta" => self.open(number, Kind::Text, BlockKind::Text, out),
                "thinking_delta" => {
                    let kind = Kind::Thinking { signature: String::new() };
                    self.open(number, kind, BlockKind::Thinking, out)
                }
                _ => return,
            },
        };
        let Some(block) = self.blocks.get_mut(index) else { return };
        let added = match (&mut block.kind, delta.kind) {
            (Kind::Text, "text_delta") => delta.text,
            (Kind::Thinking { .. }, "thinking_delta") => delta.thinking,
            (Kind::Thinking { signature }, "signature_delta") => {
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
                None
            }
            (Kind::Call { given }, "input_json_delta") => {
                let added = delta.partial_json.filter(|json| !json.is_empty());
                if added.is_some() {
                    *given = None;
                }
                added
            }
            _ => None,
        };
        if let Some(delta) = added.filter(|text| !text.is_empty()) {
            out.push(Delta::Extend { index, delta });
        }
    }

    /// Ends a block.
    pub(super) fn stop(&mut self, number: u64, out: &mut Vec<Delta>) {
        let Some(index) = self.numbers.get_mut(&number).and_then(Option::take) else { return };
        self.settle_call(out);
        match self.blocks.get(index).map(|block| &block.kind) {
            Some(Kind::Call { .. }) => self.ended_call = Some(index),
            _ => self.seal_one(index, false, out),
        }
    }

    /// Seals the open blocks, in the order of the content. `incomplete`: the answer broke off.
    pub(super) fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.ended_call = None;
        for index in self.unsealed..self.blocks.len() {
            self.seal_one(index, incomplete, out);
        }
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
        self.numbers.insert(number, Some(index));
        out.push(Delta::Open { index, kind: block });
        index
    }

    fn seal_one(&mut self, index: usize, incomplete: bool, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.get_mut(index).filter(|block| !block.is_sealed) else { return };
        block.is_sealed = true;
        let mut seal = BlockSeal { incomplete, ..BlockSeal::default() };
        match &mut block.kind {
            Kind::Text => {}
            // A part of a signature is worthless.
            Kind::Thinking { signature } => {
                seal.signature =
                    Some(std::mem::take(signature)).filter(|whole| !whole.is_empty() && !incomplete);
            }
            Kind::Redacted { data } => {
                seal.signature = data.take();
                seal.redacted = true;
            }
            Kind::Call { given } => {
                if let Some(delta) = given.take() {
                    out.push(Delta::Extend { index, delta });
                }
            }
        }
        out.push(Delta::Seal { index, seal });
        while self.blocks.get(self.unsealed).is_some_and(|block| block.is_sealed) {
            self.unsealed += 1;
        }
    }
}

/// Whether arguments are an empty object or blank.
fn is_empty_object(json: &str) -> bool {
    let inner = json.trim().strip_prefix('{').and_then(|json| json.strip_suffix('}'));
    inner.unwrap_or(json).trim().is_empty()
}
