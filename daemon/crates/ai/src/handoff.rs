//! Makes a transcript legal for the next request: tool calls and results paired, images and thinking of other models
//! dealt with, derived kinds of messages turned into prompts.
//!
//! What comes out borrows from the transcript, so that large contents are not copied.

pub(crate) mod call_id;
mod convert;
mod pairing;
mod turn;

pub use convert::prompt_text;
pub(crate) use turn::{AssistantPart, Part, ToolAnswer, Turn};

use std::borrow::Cow;

use agentd_protocol::{
    Json,
    message::{AssistantMessage, ContentBlock, Message, StopReason},
    model::Model,
    tool::ToolSpec,
};

use crate::{
    handoff::{convert::Images, pairing::Pairing},
    system_state::{SystemState, describe_change},
};

/// What the next request goes to.
pub(crate) struct Target<'a> {
    /// The model.
    pub(crate) model: &'a Model,
    /// Whether images are kept from it in any case.
    pub(crate) block_images: bool,
    /// Where later system messages go.
    pub(crate) system: SystemPlacement,
    /// Makes a tool call's id of another model legal for this wire.
    pub(crate) call_id: &'a dyn Fn(&str) -> String,
}

/// Where system messages go that come after the first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemPlacement {
    /// All of them are folded into the leading prompt.
    Folded,
    /// Where they stand, as text.
    InPlace,
}

/// A transcript that is legal for its target.
pub(crate) struct Transcript<'a> {
    /// The system prompt; may be empty.
    pub(crate) prompt: String,
    /// The tools that the model can call.
    pub(crate) tools: Vec<ToolSpec>,
    /// Everything else, oldest first. Each assistant turn with calls is followed by their results.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// The messages that can be read; kinds that this version does not know are kept from the model.
pub(crate) fn readable(messages: &[Json<Message>]) -> Vec<&Message> {
    messages.iter().filter_map(Json::get).collect()
}

/// Puts the transcript together.
pub(crate) fn prepare<'a>(messages: &[&'a Message], target: &Target<'_>) -> Transcript<'a> {
    let images = Images::of(target);
    let mut state = SystemState::default();
    let mut prompt = None;
    let mut pairing = Pairing::default();
    for message in messages {
        match message {
            Message::System(system) => {
                if let (SystemPlacement::InPlace, Some(_)) = (target.system, &prompt) {
                    let text = describe_change(system);
                    if !text.is_empty() {
                        pairing.aside(Turn::System(text));
                    }
                }
                state.apply(system);
                continue;
            }
            Message::Assistant(answer) => {
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                    pairing.answer(assistant_parts(answer, target));
                }
            }
            Message::ToolResult(result) => {
                let parts = convert::parts(&result.content, images.in_results);
                pairing.result(&result.tool_call_id, parts, result.is_error);
            }
            other => {
                if let Some(parts) = convert::prompt(other, images.in_prompts) {
                    pairing.aside(Turn::User(parts));
                }
            }
        }
        prompt.get_or_insert_with(|| state.prompt());
    }
    let prompt = match target.system {
        SystemPlacement::Folded => state.prompt(),
        SystemPlacement::InPlace => prompt.unwrap_or_else(|| state.prompt()),
    };
    Transcript { prompt, tools: state.tools, turns: pairing.finish() }
}

/// The blocks of an answer that its target may see.
fn assistant_parts<'a>(answer: &'a AssistantMessage, target: &Target<'_>) -> Vec<AssistantPart<'a>> {
    let model = target.model;
    let same = answer.provider == model.provider && answer.api == model.api && answer.model == model.id;
    let mut parts = Vec::with_capacity(answer.content.len());
    for block in &answer.content {
        match block {
            ContentBlock::Text { text, text_signature } => {
                let signature = text_signature.as_deref().filter(|_| same);
                // Google ends answers with signatures on empty texts.
                let is_bare_signature = signature.is_some() && model.api.starts_with("google-");
                if !text.is_empty() || is_bare_signature {
                    parts.push(AssistantPart::Text { text, signature });
                }
            }
            ContentBlock::Thinking { thinking, thinking_signature, redacted } => {
                let redacted = *redacted == Some(true);
                if same && (redacted || thinking_signature.is_some() || !thinking.is_empty()) {
                    let signature = thinking_signature.as_deref();
                    parts.push(AssistantPart::Thinking { text: thinking, signature, redacted });
                }
            }
            ContentBlock::ToolCall(call) => parts.push(AssistantPart::ToolCall {
                original_id: &call.id,
                id: if same && !call.id.is_empty() {
                    Cow::Borrowed(&call.id)
                } else {
                    Cow::Owned((target.call_id)(&call.id))
                },
                name: &call.name,
                arguments: &call.arguments,
                signature: call.thought_signature.as_deref().filter(|_| same),
            }),
            ContentBlock::Image(_) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod matrix;
