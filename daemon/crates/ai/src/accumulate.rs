//! Folds deltas into an assistant message. Pure.

use std::sync::Arc;

use agentd_protocol::{
    Json,
    error::ErrorCode,
    event::{AssistantMessageEvent, ToolCallBlock},
    message::{AssistantMessage, ContentBlock, Cost, StopReason, ToolCall, Usage},
    model::Model,
    number,
};
use serde_json::{Map, value::RawValue};

use crate::{
    BlockKind, BlockSeal, Delta,
    cost::cost,
    failure::{Failure, FailureKind},
    partial_json::{best_reading, parse_arguments},
};

/// Builds one answer from its deltas, and gives the event for clients of each delta.
///
/// The cost of a delta is proportional to what it adds. Deltas in an illegal order (see [`Delta`]) are dropped with a warning: a bug of an
/// adapter must not end a run.
#[derive(Debug)]
pub struct Accumulator {
    model: Arc<Model>,
    message: AssistantMessage,
    blocks: Vec<Block>,
    usage: Json<Usage>,
    failure: Option<Failure>,
    finished: bool,
}

/// A block of the answer so far.
#[derive(Debug)]
enum Block {
    Open { kind: BlockKind, text: String },
    Sealed(ContentBlock),
}

/// The part of an answer that was taken by [`Accumulator::since`]; by default nothing.
#[derive(Debug, Clone, Default)]
pub struct SeenContent(Vec<SeenBlock>);

/// The part of a block that was taken.
#[derive(Debug, Clone, Copy, Default)]
struct SeenBlock {
    bytes: usize,
    /// The block is sealed.
    done: bool,
}

/// A new piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPiece {
    /// The index of the block in the answer.
    pub block: usize,
    /// The kind of the block.
    pub kind: AnswerPieceKind,
    /// The new text; may be empty in the last piece of a block.
    pub text: String,
    /// The block's signature, in its last piece.
    pub signature: Option<String>,
    /// Whether the provider withheld the reasoning, in the last piece.
    pub redacted: bool,
}

/// The kind of a block that clients see growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPieceKind {
    /// Text.
    Text,
    /// The model's reasoning.
    Thinking,
}

impl Accumulator {
    /// Starts the answer of `model` to a request made at `timestamp` (Unix time in milliseconds).
    #[must_use]
    pub fn new(model: Arc<Model>, timestamp: i64) -> Self {
        let message = AssistantMessage::pending(&model.api, &model.provider, &model.id, timestamp);
        let usage = usage_json(&message.usage);
        Self { model, message, blocks: Vec::new(), usage, failure: None, finished: false }
    }

    /// Adds a delta; returns its event for clients, if any.
    pub fn fold(&mut self, delta: Delta) -> Option<AssistantMessageEvent> {
        if self.finished {
            tracing::warn!(?delta, "a delta after the end of an answer");
            return None;
        }
        match delta {
            Delta::Started | Delta::Stalled(_) => None,
            Delta::Open { index, kind } => self.open(index, kind),
            Delta::Extend { index, delta } => self.extend(index, delta),
            Delta::Seal { index, seal } => self.seal(index, seal),
            Delta::Usage(usage) => {
                self.set_usage(usage);
                None
            }
            Delta::ResponseId(id) => {
                self.message.response_id = Some(id);
                None
            }
            Delta::ResponseModel(model) => {
                self.message.response_model = Some(model);
                None
            }
            Delta::Whole(answer) => {
                self.take_whole(*answer);
                None
            }
            Delta::Done { stop_reason, raw_stop_reason } => {
                self.finished = true;
                self.message.stop_reason = stop_reason;
                self.message.raw_stop_reason = raw_stop_reason;
                None
            }
            Delta::Failed { failure, raw_stop_reason } => {
                self.fail(failure, raw_stop_reason);
                None
            }
        }
    }

    /// Whether the answer has ended, well or not.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The failure of the answer, if it failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The token counts so far, serialised when they last changed.
    #[must_use]
    pub fn usage_json(&self) -> Json<Usage> {
        self.usage.clone()
    }

    /// The answer so far, with a pending stop reason and incomplete open blocks. The cost is proportional to the length of the answer.
    #[must_use]
    pub fn so_far(&self) -> AssistantMessage {
        let cut = BlockSeal { incomplete: true, ..BlockSeal::default() };
        let content = self.blocks.iter().map(|block| match block {
            Block::Open { kind, text } => finished_block(kind.clone(), text.clone(), cut.clone()),
            Block::Sealed(block) => block.clone(),
        });
        AssistantMessage { content: content.collect(), ..self.message.clone() }
    }

    /// The text and the reasoning since `seen`, which is moved to the current end. The cost is proportional to what is new.
    #[must_use]
    pub fn since(&self, seen: &mut SeenContent) -> Vec<AnswerPiece> {
        let mut pieces = Vec::new();
        seen.0.resize(self.blocks.len(), SeenBlock::default());
        // All blocks, since several may be open.
        for (block, (content, progress)) in self.blocks.iter().zip(&mut seen.0).enumerate() {
            if progress.done {
                continue;
            }
            let (kind, text, signature, redacted) = match content {
                Block::Open { kind: BlockKind::Text, text } => (AnswerPieceKind::Text, text, None, None),
                Block::Open { kind: BlockKind::Thinking, text } => {
                    (AnswerPieceKind::Thinking, text, None, None)
                }
                Block::Sealed(ContentBlock::Text { text, text_signature }) => {
                    (AnswerPieceKind::Text, text, text_signature.clone(), None)
                }
                Block::Sealed(ContentBlock::Thinking { thinking, thinking_signature, redacted }) => {
                    (AnswerPieceKind::Thinking, thinking, thinking_signature.clone(), *redacted)
                }
                Block::Open { kind: BlockKind::ToolCall { .. }, .. } | Block::Sealed(_) => continue,
            };
            // The seal of a block may have replaced its text by a shorter one.
            let text = text.get(progress.bytes..).unwrap_or_default().to_owned();
            progress.bytes += text.len();
            progress.done = matches!(content, Block::Sealed(_));
            if !text.is_empty() || signature.is_some() {
                let redacted = redacted.unwrap_or_default();
                pieces.push(AnswerPiece { block, kind, text, signature, redacted });
            }
        }
        pieces
    }

    /// The answer, with incomplete blocks that were never sealed.
    #[must_use]
    pub fn into_message(mut self) -> AssistantMessage {
        let cut = BlockSeal { incomplete: true, ..BlockSeal::default() };
        self.message.content = self
            .blocks
            .into_iter()
            .map(|block| match block {
                Block::Open { kind, text } => finished_block(kind, text, cut.clone()),
                Block::Sealed(block) => block,
            })
            .collect();
        self.message
    }

    fn take_whole(&mut self, answer: AssistantMessage) {
        self.blocks = answer.content.iter().cloned().map(Block::Sealed).collect();
        self.message = AssistantMessage {
            content: Vec::new(),
            stop_reason: StopReason::Pending,
            error_message: None,
            ..answer
        };
        self.usage = usage_json(&self.message.usage);
    }

    fn open(&mut self, content_index: usize, kind: BlockKind) -> Option<AssistantMessageEvent> {
        if content_index != self.blocks.len() {
            tracing::warn!(content_index, expected = self.blocks.len(), "a block was opened out of order");
            return None;
        }
        let event = match &kind {
            BlockKind::Text => AssistantMessageEvent::TextStart { content_index },
            BlockKind::Thinking => AssistantMessageEvent::ThinkingStart { content_index },
            BlockKind::ToolCall { id, name } => AssistantMessageEvent::ToolcallStart {
                content_index,
                id: id.clone(),
                tool_name: name.clone(),
            },
        };
        self.blocks.push(Block::Open { kind, text: String::new() });
        Some(event)
    }

    fn extend(&mut self, content_index: usize, delta: String) -> Option<AssistantMessageEvent> {
        let Some(Block::Open { kind, text }) = self.blocks.get_mut(content_index) else {
            tracing::warn!(content_index, "text for a block that is not open");
            return None;
        };
        text.push_str(&delta);
        Some(match kind {
            BlockKind::Text => AssistantMessageEvent::TextDelta { content_index, delta },
            BlockKind::Thinking => AssistantMessageEvent::ThinkingDelta { content_index, delta },
            BlockKind::ToolCall { .. } => AssistantMessageEvent::ToolcallDelta { content_index, delta },
        })
    }

    fn seal(&mut self, content_index: usize, seal: BlockSeal) -> Option<AssistantMessageEvent> {
        let Some(block @ Block::Open { .. }) = self.blocks.get_mut(content_index) else {
            tracing::warn!(content_index, "the end of a block that is not open");
            return None;
        };
        let Block::Open { kind, text } = std::mem::replace(block, Block::Sealed(ContentBlock::text("")))
        else {
            return None;
        };
        let finished = finished_block(kind, text, seal);
        let event = match &finished {
            ContentBlock::Text { text, .. } => {
                AssistantMessageEvent::TextEnd { content_index, content: text.clone() }
            }
            ContentBlock::Thinking { thinking, .. } => {
                AssistantMessageEvent::ThinkingEnd { content_index, content: thinking.clone() }
            }
            ContentBlock::ToolCall(call) => AssistantMessageEvent::ToolcallEnd {
                content_index,
                tool_call: ToolCallBlock::ToolCall(call.clone()),
            },
            ContentBlock::Image(_) => return None,
        };
        *block = Block::Sealed(finished);
        Some(event)
    }

    fn set_usage(&mut self, usage: Usage) {
        let usage = priced(&self.model, usage);
        if usage != self.message.usage {
            self.usage = usage_json(&usage);
            self.message.usage = usage;
        }
    }

    fn fail(&mut self, failure: Failure, raw_stop_reason: Option<String>) {
        self.finished = true;
        let aborted = failure.kind == FailureKind::Aborted;
        self.message.stop_reason = if aborted { StopReason::Aborted } else { StopReason::Error };
        // Clients know this one text of an abort, whatever the adapter's.
        let failure = if aborted { Failure::aborted() } else { failure };
        // Clients and people look for a text there.
        let is_said = !failure.message.trim().is_empty();
        let text = if is_said { &*failure.message } else { "The provider sent an error without a message." };
        self.message.error_message = Some(text.to_owned());
        self.message.code = match failure.kind {
            FailureKind::ModelRefusal => Some(ErrorCode::ModelRefused),
            FailureKind::BudgetReached => Some(ErrorCode::LimitReached),
            FailureKind::Auth => Some(ErrorCode::NoCredentials),
            _ => None,
        };
        self.message.raw_stop_reason = raw_stop_reason;
        self.failure = Some(failure);
    }
}

/// The counts of a provider within limits, and their cost at the model's prices.
#[must_use]
pub fn priced(model: &Model, mut usage: Usage) -> Usage {
    clamp_counts(&mut usage);
    // The adapter computes the cost itself for prices that are not listed (of a service tier).
    let is_priced = usage.cost.total_from_provider == Some(false) && usage.cost != Cost::default();
    if !is_priced {
        usage.cost = cost(&model.cost, &usage);
    }
    usage
}

/// The content block that an opened block becomes.
fn finished_block(kind: BlockKind, text: String, seal: BlockSeal) -> ContentBlock {
    match kind {
        BlockKind::Text => ContentBlock::Text { text, text_signature: seal.signature },
        BlockKind::Thinking => ContentBlock::Thinking {
            thinking: text,
            thinking_signature: seal.signature,
            redacted: seal.redacted.then_some(true),
        },
        BlockKind::ToolCall { id, name } => {
            let (arguments, arguments_error) = if seal.incomplete {
                (best_reading(&text), None)
            } else {
                match parse_arguments(&text) {
                    Ok(arguments) => (arguments, None),
                    Err(error) => (Map::new(), Some(error.to_string())),
                }
            };
            ContentBlock::ToolCall(ToolCall {
                id,
                name,
                arguments,
                thought_signature: seal.signature,
                namespace: None,
                arguments_error,
            })
        }
    }
}

/// Limits the counts of a server, since they are added up later and read by clients that know no larger integers.
fn clamp_counts(usage: &mut Usage) {
    let Usage { input, output, cache_read, cache_write, cache_write1h, reasoning, total_tokens, cost: _ } =
        usage;
    let optional = [cache_write1h, reasoning].into_iter().flatten();
    for count in [input, output, cache_read, cache_write, total_tokens].into_iter().chain(optional) {
        *count = (*count).min(number::MAX_COUNT);
    }
}

fn usage_json(usage: &Usage) -> Json<Usage> {
    // Usage has string keys only, so this cannot fail; `null` reads as zeros.
    Json::new(usage.clone()).unwrap_or_else(|_| Json::from_raw(RawValue::NULL.to_owned()))
}

#[cfg(test)]
mod tests;
