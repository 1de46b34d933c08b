//! Turns of the neutral transcript as messages of this API.

use std::borrow::Cow;

use super::{
    call_id::Ids,
    compat::Compat,
    results,
    wire::outgoing::{Block, BlockBody, Role, WireMessage},
};
use crate::handoff::{AssistantPart, Part, Turn};

/// Stands before images that come without a word (the text is the reference's).
pub(super) const SEE_IMAGE: &str = "(see attached image)";

/// Encodes a transcript.
pub(super) fn messages<'a>(turns: &'a [Turn<'a>], compat: &Compat) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(turns.len());
    let mut ids = Ids::default();
    // The ids of the last answer's calls; the results come in the same order.
    let mut calls: Vec<Cow<'a, str>> = Vec::new();
    for turn in turns {
        let (role, content) = match turn {
            Turn::System(text) => (Role::User, BlockBody::text(text.as_str()).into_iter().collect()),
            Turn::User(parts) => (Role::User, content(parts)),
            Turn::Assistant(parts) => {
                calls.clear();
                (Role::Assistant, answer(parts, compat, &mut ids, &mut calls))
            }
            Turn::Results(answers) => (Role::User, results::blocks(answers, &calls)),
        };
        if !content.is_empty() {
            messages.push(WireMessage { role, content: content.into_iter().map(Block::from).collect() });
        }
    }
    messages
}

/// The parts of a prompt or of a result; empty when there is nothing to see.
pub(super) fn content<'a>(parts: &'a [Part<'a>]) -> Vec<BlockBody<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) => BlockBody::text(text.as_ref()),
        Part::Image(image) => Some(BlockBody::image(image)),
    });
    let mut blocks: Vec<BlockBody<'a>> = blocks.collect();
    let wordless = !blocks.iter().any(|block| matches!(block, BlockBody::Text { .. }));
    if wordless && !blocks.is_empty() {
        blocks.insert(0, BlockBody::Text { text: SEE_IMAGE.into() });
    }
    blocks
}

fn answer<'a>(
    parts: &'a [AssistantPart<'a>],
    compat: &Compat,
    ids: &mut Ids<'a>,
    calls: &mut Vec<Cow<'a, str>>,
) -> Vec<BlockBody<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        AssistantPart::Text { text, .. } => BlockBody::text(*text),
        AssistantPart::Thinking { signature, redacted: true, .. } => {
            signature.filter(|data| !data.is_empty()).map(|data| BlockBody::RedactedThinking { data })
        }
        AssistantPart::Thinking { text, signature, redacted: false } => {
            match signature.filter(|signature| !signature.is_empty()) {
                Some(signature) => Some(BlockBody::Thinking { thinking: text, signature }),
                None if text.trim().is_empty() => None,
                None if compat.allow_empty_signature => {
                    Some(BlockBody::Thinking { thinking: text, signature: "" })
                }
                // Thinking without its signature is refused.
                None => BlockBody::text(*text),
            }
        }
        AssistantPart::ToolCall { id, name, arguments, .. } => {
            let id = ids.unique(id);
            calls.push(id.clone());
            Some(BlockBody::ToolUse { id, name, input: arguments })
        }
    });
    let mut blocks: Vec<BlockBody<'a>> = blocks.collect();
    // An answer may not end with thinking (one that met its limit there does); nothing follows from that thinking.
    while let Some(BlockBody::Thinking { .. } | BlockBody::RedactedThinking { .. }) = blocks.last() {
        blocks.pop();
    }
    blocks
}
