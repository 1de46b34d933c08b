//! Hands a transcript over to the model of the next request: pairs tool calls with results, removes images and thinking that the model
//! cannot read, turns derived kinds of messages into prompts.
//!
//! The output borrows from the transcript, so that large contents are not copied.

mod turn;

use std::{borrow::Cow, sync::Arc};

use agentd_protocol::{
    Json,
    message::{AssistantMessage, ContentBlock, Message, StopReason},
    model::Model,
    tool::ToolSpec,
};

use self::turn::Images;
use crate::system_state::{SystemState, describe_change};

pub use turn::prompt_text;
pub(crate) use turn::{AssistantPart, Part, ToolAnswer, Turn};

/// The target of the next request.
pub(crate) struct Target<'a> {
    /// The model.
    pub(crate) model: &'a Model,
    /// Whether the user keeps images from all models.
    pub(crate) block_images: bool,
    /// The placement of later system messages.
    pub(crate) system: SystemPlacement,
    /// Makes the id of another model's tool call legal in this API.
    pub(crate) call_id: &'a dyn Fn(&str) -> String,
}

/// The placement of system messages after the first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemPlacement {
    /// All of them are folded into the leading prompt.
    Folded,
    /// They stay in place, as text.
    InPlace,
}

/// A transcript that is legal for its target.
pub(crate) struct Transcript<'a> {
    /// The system prompt; may be empty.
    pub(crate) prompt: String,
    /// The tools that the model can call.
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    /// Everything else, oldest first. Each assistant turn with calls is followed by their results.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// The readable messages; the model does not get unknown kinds.
pub(crate) fn readable(messages: &[Json<Message>]) -> Vec<&Message> {
    messages.iter().filter_map(Json::get).collect()
}

/// Makes the transcript legal for `target`.
pub(crate) fn prepare<'a>(messages: &[&'a Message], target: &Target<'_>) -> Transcript<'a> {
    let images = Images::of(target.model, target.block_images);
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
                let parts = turn::parts(&result.content, images.in_results);
                pairing.result(&result.tool_call_id, parts, result.is_error);
            }
            other => {
                if let Some(parts) = turn::prompt(other, images.in_prompts) {
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

/// The blocks of an answer that the target may see.
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

/// Stands for a missing result (the text is pi's).
const NO_RESULT: &str = "No result provided";

/// Collects turns so that every tool call is answered exactly once, right after its answer: other turns wait while calls lack results.
#[derive(Default)]
pub(super) struct Pairing<'a> {
    turns: Vec<Turn<'a>>,
    calls: Vec<PendingCall<'a>>,
    held: Vec<Turn<'a>>,
}

struct PendingCall<'a> {
    original_id: &'a str,
    id: Cow<'a, str>,
    name: &'a str,
    result: Option<(Vec<Part<'a>>, bool)>,
}

impl<'a> Pairing<'a> {
    /// Adds a prompt or a system message, after the results of waiting calls.
    pub(super) fn aside(&mut self, turn: Turn<'a>) {
        if self.calls.is_empty() {
            self.turns.push(turn);
        } else {
            self.held.push(turn);
        }
    }

    /// Adds an answer.
    pub(super) fn answer(&mut self, mut parts: Vec<AssistantPart<'a>>) {
        self.close();
        if parts.is_empty() {
            return;
        }
        for part in &mut parts {
            if let AssistantPart::ToolCall { original_id, id, name, .. } = part {
                make_unique(id, &self.calls);
                self.calls.push(PendingCall { original_id, id: id.clone(), name, result: None });
            }
        }
        self.turns.push(Turn::Assistant(parts));
    }

    /// Adds a result; one without a waiting call is dropped.
    pub(super) fn result(&mut self, call_id: &str, parts: Vec<Part<'a>>, is_error: bool) {
        let waiting = |call: &&mut PendingCall<'_>| call.result.is_none() && call.original_id == call_id;
        match self.calls.iter_mut().find(waiting) {
            Some(call) => call.result = Some((parts, is_error)),
            None => tracing::debug!(call_id, "a tool result without its call is kept from the model"),
        }
        if self.calls.iter().all(|call| call.result.is_some()) {
            self.close();
        }
    }

    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        self.close();
        self.turns
    }

    /// Answers the calls that still lack results, then adds the turns that waited.
    fn close(&mut self) {
        if !self.calls.is_empty() {
            let answers = self.calls.drain(..).map(|call| {
                let (parts, is_error) =
                    call.result.unwrap_or_else(|| (vec![Part::Text(NO_RESULT.into())], true));
                ToolAnswer { call_id: call.id, tool_name: call.name, parts, is_error }
            });
            self.turns.push(Turn::Results(answers.collect()));
        }
        self.turns.append(&mut self.held);
    }
}

/// Changes `id` if another call of the answer has it.
fn make_unique(id: &mut Cow<'_, str>, others: &[PendingCall<'_>]) {
    let taken = |id: &str| others.iter().any(|call| call.id == id);
    if !taken(id) {
        return;
    }
    let unique = (2..).map(|number| format!("{id}_{number}")).find(|candidate| !taken(candidate));
    if let Some(unique) = unique {
        *id = Cow::Owned(unique);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod matrix;
