//! Encodes the turns of a transcript as messages of the chat completions API.

use std::borrow::Cow;

use agentd_protocol::model::Model;
use serde_json::Value;

use super::{
    api_types::{Call, CallFunction, ChatMessage, Content, ContentPart, Reasoning},
    compat::Compat,
};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::{
        call_id::{hash, sanitized},
        request_parts::ArgumentsText,
    },
};

/// The fields in which servers send reasoning, in the order of preference.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The assistant message after tool results, for servers that require one (the text is pi's).
const PROCESSED: &str = "I have processed the tool results.";

/// Encodes a transcript. `system_role` is `system` or `developer`.
pub(super) fn messages<'a>(
    prompt: &'a str,
    turns: &'a [Turn<'a>],
    model: &Model,
    compat: &Compat,
    system_role: &'static str,
) -> Vec<ChatMessage<'a>> {
    let mut encoder = Encoder { model, compat, messages: Vec::with_capacity(turns.len() + 1) };
    if !prompt.is_empty() {
        encoder.messages.push(ChatMessage::new(system_role, Content::Text(prompt.into())));
    }
    for turn in turns {
        match turn {
            Turn::System(text) => {
                encoder.messages.push(ChatMessage::new(system_role, Content::Text(text.into())));
            }
            Turn::User(parts) => encoder.user(content(parts)),
            Turn::Assistant(parts) => encoder.assistant(parts),
            Turn::Results(answers) => encoder.results(answers),
        }
    }
    encoder.messages
}

struct Encoder<'a, 'c> {
    model: &'c Model,
    compat: &'c Compat,
    messages: Vec<ChatMessage<'a>>,
}

impl<'a> Encoder<'a, '_> {
    fn user(&mut self, content: Content<'a>) {
        let after_result = self.messages.last().is_some_and(|message| message.role == "tool");
        if after_result && self.compat.requires_assistant_after_tool_result {
            self.messages.push(ChatMessage::new("assistant", Content::Text(PROCESSED.into())));
        }
        self.messages.push(ChatMessage::new("user", content));
    }

    fn assistant(&mut self, parts: &'a [AssistantPart<'a>]) {
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        let mut calls = Vec::new();
        for part in parts {
            match part {
                AssistantPart::Text { text, .. } => texts.push(*text),
                AssistantPart::Thinking { text, signature, .. } => thoughts.push((*text, *signature)),
                AssistantPart::ToolCall { id, name, arguments, .. } => calls.push(Call {
                    id: Cow::Borrowed(id),
                    kind: "function",
                    function: CallFunction { name, arguments: ArgumentsText(arguments) },
                }),
            }
        }
        let thought = joined(thoughts.iter().map(|(text, _)| *text).filter(|text| !text.is_empty()), "\n");
        let as_text = self.compat.requires_thinking_as_text && !thought.is_empty();
        let thoughts_apart = || thoughts.iter().map(|(text, _)| *text).filter(|text| !text.trim().is_empty());
        if texts.is_empty() && calls.is_empty() && !as_text {
            return;
        }
        let content = if as_text {
            let texts = texts.into_iter().map(Cow::Borrowed);
            Content::Parts(
                std::iter::once(joined(thoughts_apart(), "\n\n"))
                    .chain(texts)
                    .map(ContentPart::text)
                    .collect(),
            )
        } else if texts.is_empty()
            && !(self.compat.requires_non_null_assistant_content
                || self.compat.requires_assistant_after_tool_result)
        {
            Content::Null
        } else {
            Content::Text(joined(texts.into_iter(), ""))
        };
        let mut message = ChatMessage::new("assistant", content);
        message.tool_calls = calls;
        if !self.compat.requires_thinking_as_text {
            message.reasoning = reasoning(&thoughts, thought, self.model);
        }
        let wants_reasoning =
            self.compat.requires_reasoning_content_on_assistant_messages && self.model.reasoning;
        if wants_reasoning && matches!(message.reasoning, Reasoning::None) {
            message.reasoning = Reasoning::Text { field: REASONING_FIELDS[0], text: "".into() };
        }
        self.messages.push(message);
    }

    fn results(&mut self, answers: &'a [ToolAnswer<'a>]) {
        let mut images = Vec::new();
        for answer in answers {
            let texts = answer.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_ref()),
                Part::Image(_) => None,
            });
            let mut text = joined(texts, "\n");
            let before = images.len();
            images.extend(answer.parts.iter().filter_map(|part| match part {
                Part::Image(image) => Some(ContentPart::image(image)),
                Part::Text(_) => None,
            }));
            if text.trim().is_empty() {
                text = if images.len() > before { "(see attached image)" } else { "(no tool output)" }.into();
            }
            let mut message = ChatMessage::new("tool", Content::Text(text));
            message.tool_call_id = Some(Cow::Borrowed(&answer.call_id));
            message.name = self.compat.requires_tool_result_name.then_some(answer.tool_name);
            self.messages.push(message);
        }
        if !images.is_empty() {
            let caption = ContentPart::text("Attached image(s) from tool result:");
            self.user(Content::Parts(std::iter::once(caption).chain(images).collect()));
        }
    }
}

/// The content of a prompt: plain text if it is only text.
fn content<'a>(parts: &'a [Part<'a>]) -> Content<'a> {
    if let [Part::Text(text)] = parts {
        return Content::Text(Cow::Borrowed(text));
    }
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => ContentPart::text(text.as_ref()),
        Part::Image(image) => ContentPart::image(image),
    });
    Content::Parts(parts.collect())
}

/// The reasoning in the field in which it came. The signature names the field, or holds the provider's records.
fn reasoning<'a>(
    thoughts: &[(&'a str, Option<&'a str>)],
    thought: Cow<'a, str>,
    model: &Model,
) -> Reasoning<'a> {
    let signatures = || thoughts.iter().filter_map(|(_, signature)| *signature);
    let details: Vec<Value> = signatures()
        .filter(|signature| signature.starts_with('['))
        .filter_map(|signature| serde_json::from_str::<Vec<Value>>(signature).ok())
        .flatten()
        .collect();
    if !details.is_empty() {
        return Reasoning::Details(details);
    }
    let field =
        signatures().find_map(|signature| REASONING_FIELDS.into_iter().find(|field| *field == signature));
    match field {
        // OpenCode Go sends `reasoning` but reads `reasoning_content`.
        Some("reasoning") if model.provider == "opencode-go" && !thought.is_empty() => {
            Reasoning::Text { field: REASONING_FIELDS[0], text: thought }
        }
        Some(field) if !thought.is_empty() => Reasoning::Text { field, text: thought },
        _ => Reasoning::None,
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>, separator: &str) -> Cow<'a, str> {
    let texts: Vec<&str> = texts.collect();
    match texts[..] {
        [] => Cow::Borrowed(""),
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(texts.join(separator)),
    }
}

/// The longest id that OpenAI takes, in bytes.
const MAX_ID: usize = 40;

/// The longest id for other servers, in bytes.
const MAX_ELSEWHERE: usize = 64;

/// An id that is legal in this API. Ids of the form `call|item` (of the responses API) become one word; long ids keep their beginning and
/// get a hash, so that different ids stay different.
pub(super) fn normalized_call_id(id: &str, provider: &str) -> String {
    if let Some((call, item)) = id.split_once('|') {
        let joined = match item {
            "" => sanitized(call),
            item => format!("{}_{}", sanitized(call), sanitized(item)),
        };
        if joined.len() <= MAX_ID {
            return joined;
        }
        let mut prefix = sanitized(call);
        prefix.truncate(MAX_ID - 9);
        return format!("{prefix}_{}", hash(id));
    }
    let mut legal = sanitized(id);
    if provider == "openai" {
        // Only ASCII is left, so every index is a character boundary.
        legal.truncate(MAX_ID);
    } else if legal.len() > MAX_ELSEWHERE {
        legal.truncate(MAX_ELSEWHERE - 9);
        legal = format!("{legal}_{}", hash(id));
    }
    if legal.is_empty() { format!("call_{}", hash(id)) } else { legal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_apis_become_one_word() {
        assert_eq!(normalized_call_id("call_1|fc_2", "x"), "call_1_fc_2");
        assert_eq!(normalized_call_id("call/1|fc.2", "x"), "call_1_fc_2");
        assert_eq!(normalized_call_id("call_1|", "x"), "call_1");
        let long = format!("call_abc|fc_{}", "x".repeat(60));
        let id = normalized_call_id(&long, "x");
        assert!(id.starts_with("call_abc_") && id.len() == 17, "{id}");
        assert_eq!(id, normalized_call_id(&long, "x"));
        assert_ne!(id, normalized_call_id(&format!("{long}y"), "x"));
        assert_eq!(normalized_call_id(&format!("{}|y", "c".repeat(60)), "x").len(), 40);
    }

    #[test]
    fn other_ids_stay() {
        let long = "a".repeat(50);
        assert_eq!(normalized_call_id(&long, "local"), long);
        assert_eq!(normalized_call_id(&long, "openai").len(), 40);
        assert_eq!(normalized_call_id("call_1", "openai"), "call_1");
    }

    #[test]
    fn what_servers_refuse_is_replaced() {
        assert_eq!(normalized_call_id("a b.\u{fc}", "local"), "a_b__");
        assert_eq!(normalized_call_id(&"a".repeat(70), "local").len(), 64);
        assert_ne!(
            normalized_call_id(&"a".repeat(70), "local"),
            normalized_call_id(&"a".repeat(71), "local")
        );
        assert!(
            normalized_call_id("", "local").starts_with("call_")
                && normalized_call_id("", "openai").len() > 5
        );
    }
}
