//! Encodes the turns of a transcript as messages of this API. Roles have to alternate, so consecutive messages of one role are joined.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    api_types::{ApiMessage, Image, MessageBlock, Reasoning, ResultBlock, Role, Status},
    model_traits::ModelTraits,
};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::call_id::CallIds,
};

/// Stands for a prompt without text and images: this API refuses blank texts (the text is pi's).
const EMPTY: &str = "<empty>";

/// Stands for a result without text and images.
const NO_OUTPUT: &str = "(no tool output)";

/// Stands for an image of a type that this API does not accept.
const UNKNOWN_IMAGE: &str = "(image omitted: its type is none of PNG, JPEG, GIF and WebP)";

/// Stands in an error result for its images, which a Claude accepts only after the results (the text is pi's).
const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

/// Encodes a transcript.
pub(super) fn messages<'a>(turns: &'a [Turn<'a>], traits: &ModelTraits) -> Vec<ApiMessage<'a>> {
    let mut messages: Vec<ApiMessage<'a>> = Vec::with_capacity(turns.len());
    let mut ids = CallIds::default();
    // The ids of the last answer's calls; the results come in the same order.
    let mut calls: Vec<Cow<'a, str>> = Vec::new();
    for turn in turns {
        let (role, mut content) = match turn {
            Turn::System(text) => (Role::User, text_block(text).into_iter().collect()),
            Turn::User(parts) => (Role::User, prompt(parts)),
            Turn::Assistant(parts) => {
                calls.clear();
                (Role::Assistant, answer(parts, traits, &mut ids, &mut calls))
            }
            Turn::Results(answers) => (Role::User, results(answers, &calls, traits)),
        };
        if content.is_empty() {
            continue;
        }
        match messages.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.append(&mut content),
            None => messages.push(ApiMessage { role, content }),
        }
    }
    messages
}

/// A text; `None` for a blank one.
fn text_block<'a>(text: &'a str) -> Option<MessageBlock<'a>> {
    (!text.trim().is_empty()).then_some(MessageBlock::Text(Cow::Borrowed(text)))
}

fn prompt<'a>(parts: &'a [Part<'a>]) -> Vec<MessageBlock<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) => text_block(text),
        Part::Image(image) => Some(
            Image::of(image).map_or(MessageBlock::Text(Cow::Borrowed(UNKNOWN_IMAGE)), MessageBlock::Image),
        ),
    });
    let blocks: Vec<MessageBlock<'a>> = blocks.collect();
    if blocks.is_empty() { vec![MessageBlock::Text(Cow::Borrowed(EMPTY))] } else { blocks }
}

fn answer<'a>(
    parts: &'a [AssistantPart<'a>],
    traits: &ModelTraits,
    ids: &mut CallIds<'a>,
    calls: &mut Vec<Cow<'a, str>>,
) -> Vec<MessageBlock<'a>> {
    let blocks = parts.iter().filter_map(|part| match part {
        AssistantPart::Text { text, .. } => text_block(text),
        AssistantPart::Thinking { signature, redacted: true, .. } => {
            let data = signature.filter(|data| !data.is_empty())?;
            Some(MessageBlock::ReasoningContent(Reasoning::RedactedContent(data)))
        }
        AssistantPart::Thinking { text, signature, redacted: false } => {
            reasoning(text, signature.filter(|signed| !signed.trim().is_empty()), traits)
        }
        AssistantPart::ToolCall { id, name, arguments, .. } => {
            let id = ids.unique(id);
            calls.push(id.clone());
            Some(MessageBlock::ToolUse { tool_use_id: id, name, input: named(arguments) })
        }
    });
    let mut blocks: Vec<MessageBlock<'a>> = blocks.collect();
    // The API refuses an answer that ends with thinking, as one does that met its limit there. Nothing followed from that thinking.
    while let Some(MessageBlock::ReasoningContent(_)) = blocks.last().filter(|_| traits.claude) {
        blocks.pop();
    }
    blocks
}

/// Reasoning that is not withheld. A Claude refuses its own without the signature; the models of other makers have no signatures. Like all
/// texts, it may not be blank.
fn reasoning<'a>(
    text: &'a str,
    signature: Option<&'a str>,
    traits: &ModelTraits,
) -> Option<MessageBlock<'a>> {
    if traits.claude && signature.is_none() {
        return text_block(text);
    }
    let signature = signature.filter(|_| traits.claude);
    (!text.trim().is_empty())
        .then_some(MessageBlock::ReasoningContent(Reasoning::ReasoningText { text, signature }))
}

/// Arguments without members with an empty name, which this API refuses.
fn named(arguments: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    fn is_fine(value: &Value) -> bool {
        match value {
            Value::Object(members) => members.iter().all(|(name, value)| !name.is_empty() && is_fine(value)),
            Value::Array(items) => items.iter().all(is_fine),
            _ => true,
        }
    }
    fn clean(value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(clean_members(members)),
            Value::Array(items) => Value::Array(items.iter().map(clean).collect()),
            value => value.clone(),
        }
    }
    fn clean_members(members: &Map<String, Value>) -> Map<String, Value> {
        let named = members.iter().filter(|(name, _)| !name.is_empty());
        named.map(|(name, value)| (name.clone(), clean(value))).collect()
    }
    let fine = arguments.iter().all(|(name, value)| !name.is_empty() && is_fine(value));
    if fine { Cow::Borrowed(arguments) } else { Cow::Owned(clean_members(arguments)) }
}

/// The results, then the images that are not allowed inside of them. `ids`: those of the calls, in the same order.
fn results<'a>(
    answers: &'a [ToolAnswer<'a>],
    ids: &[Cow<'a, str>],
    traits: &ModelTraits,
) -> Vec<MessageBlock<'a>> {
    let mut blocks = Vec::with_capacity(answers.len());
    let mut images = Vec::new();
    for (place, answer) in answers.iter().enumerate() {
        let id = ids.get(place).unwrap_or(&answer.call_id).clone();
        let mut content = Vec::with_capacity(answer.parts.len());
        let moved = images.len();
        let mut after_image = false;
        for part in &answer.parts {
            match part {
                Part::Text(text) if text.trim().is_empty() => {}
                Part::Text(text) => content.push(ResultBlock::Text(Cow::Borrowed(text.as_ref()))),
                Part::Image(image) => match Image::of(image) {
                    None => content.push(ResultBlock::Text(UNKNOWN_IMAGE.into())),
                    Some(image) if traits.claude && answer.is_error => {
                        if !after_image {
                            content.push(ResultBlock::Text(IMAGE_FOLLOWS.into()));
                        }
                        images.push(MessageBlock::Image(image));
                    }
                    Some(image) => content.push(ResultBlock::Image(image)),
                },
            }
            after_image = matches!(part, Part::Image(_));
        }
        if images.len() > moved {
            let text = format!("Images from the error result of tool call {id} ({}):", answer.tool_name);
            images.insert(moved, MessageBlock::Text(text.into()));
        }
        if content.is_empty() {
            content.push(ResultBlock::Text(NO_OUTPUT.into()));
        }
        let status = if answer.is_error { Status::Error } else { Status::Success };
        blocks.push(MessageBlock::ToolResult { tool_use_id: id, content, status });
    }
    blocks.append(&mut images);
    blocks
}
