//! Turns of the neutral transcript as messages of this API.

use std::borrow::Cow;

use super::{
    call_id::Ids,
    wire::outgoing::{Call, CallFunction, ChatMessage, Content, Part as WirePart},
};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::json_forms::Arguments,
};

/// Stands before the result of a tool that failed: the API has no field for it (the text is the reference's).
const FAILED: &str = "[tool error] ";

/// Encodes a transcript.
pub(super) fn messages<'a>(prompt: &'a str, turns: &'a [Turn<'a>]) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::with_capacity(turns.len() + 1);
    let mut ids = Ids::default();
    // The ids of the last answer's calls; the results come in the same order.
    let mut calls: Vec<Cow<'a, str>> = Vec::new();
    if !prompt.is_empty() {
        messages.push(ChatMessage::System { content: prompt });
    }
    for turn in turns {
        match turn {
            Turn::System(text) => messages.push(ChatMessage::System { content: text }),
            Turn::User(parts) => messages.push(ChatMessage::User { content: content(parts) }),
            Turn::Assistant(parts) => {
                calls.clear();
                messages.extend(answer(parts, &mut ids, &mut calls));
            }
            Turn::Results(answers) => {
                let results = answers.iter().enumerate().map(|(place, answer)| {
                    let id = calls.get(place).unwrap_or(&answer.call_id).clone();
                    result(answer, id)
                });
                messages.extend(results);
            }
        }
    }
    messages
}

/// A prompt: plain text where it is nothing else.
fn content<'a>(parts: &'a [Part<'a>]) -> Content<'a> {
    if let [Part::Text(text)] = parts {
        return Content::Text(text);
    }
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => WirePart::text(text.as_ref()),
        Part::Image(image) => WirePart::image(image),
    });
    Content::Parts(parts.collect())
}

/// An answer; `None` where nothing of it can be sent. The ids of its calls are added to `calls`.
fn answer<'a>(
    parts: &'a [AssistantPart<'a>],
    ids: &mut Ids,
    calls: &mut Vec<Cow<'a, str>>,
) -> Option<ChatMessage<'a>> {
    let mut content = Vec::new();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text, .. } if text.trim().is_empty() => {}
            AssistantPart::Text { text, .. } => content.push(WirePart::text(*text)),
            AssistantPart::Thinking { text, .. } if text.trim().is_empty() => {}
            AssistantPart::Thinking { text, .. } => content.push(WirePart::thinking(text)),
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                let id = ids.legal(id);
                calls.push(id.clone());
                let function = CallFunction { name, arguments: Arguments(arguments) };
                tool_calls.push(Call { id, kind: "function", function });
            }
        }
    }
    let is_empty = content.is_empty() && tool_calls.is_empty();
    (!is_empty).then_some(ChatMessage::Assistant { prefix: false, content, tool_calls })
}

fn result<'a>(answer: &'a ToolAnswer<'a>, id: Cow<'a, str>) -> ChatMessage<'a> {
    let texts = answer.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_ref()),
        Part::Image(_) => None,
    });
    let texts: Vec<&str> = texts.collect();
    let images = answer.parts.iter().filter_map(|part| match part {
        Part::Image(image) => Some(WirePart::image(image)),
        Part::Text(_) => None,
    });
    let mut images: Vec<WirePart<'a>> = images.collect();
    let mut text = match texts[..] {
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(texts.join("\n")),
    };
    if text.trim().is_empty() {
        text = if images.is_empty() { "(no tool output)" } else { "(see attached image)" }.into();
    }
    if answer.is_error {
        text = Cow::Owned(format!("{FAILED}{text}"));
    }
    let mut content = vec![WirePart::text(text)];
    content.append(&mut images);
    ChatMessage::Tool { tool_call_id: id, name: answer.tool_name, content }
}
