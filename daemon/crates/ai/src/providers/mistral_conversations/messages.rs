//! Encodes the turns of a transcript, its tool results and the tools as this API takes them.

use std::{borrow::Cow, collections::HashSet};

use super::api_types::{Call, CallFunction, ChatMessage, Content, ContentPart as ApiPart};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::request_parts::ArgumentsText,
};

/// Precedes the result of a failed tool: the API has no field for it (the text is pi's).
const FAILED: &str = "[tool error] ";

/// Encodes a transcript.
pub(super) fn messages<'a>(prompt: &'a str, turns: &'a [Turn<'a>]) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::with_capacity(turns.len() + 1);
    let mut ids = CallIds::default();
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

/// The content of a prompt: plain text if it is only text.
fn content<'a>(parts: &'a [Part<'a>]) -> Content<'a> {
    if let [Part::Text(text)] = parts {
        return Content::Text(text);
    }
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => ApiPart::text(text.as_ref()),
        Part::Image(image) => ApiPart::image(image),
    });
    Content::Parts(parts.collect())
}

/// An answer; `None` if nothing of it can be sent. The ids of its calls are added to `calls`.
fn answer<'a>(
    parts: &'a [AssistantPart<'a>],
    ids: &mut CallIds,
    calls: &mut Vec<Cow<'a, str>>,
) -> Option<ChatMessage<'a>> {
    let mut content = Vec::new();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text, .. } if text.trim().is_empty() => {}
            AssistantPart::Text { text, .. } => content.push(ApiPart::text(*text)),
            AssistantPart::Thinking { text, .. } if text.trim().is_empty() => {}
            AssistantPart::Thinking { text, .. } => content.push(ApiPart::thinking(text)),
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                let id = ids.legal(id);
                calls.push(id.clone());
                let function = CallFunction { name, arguments: ArgumentsText(arguments) };
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
        Part::Image(image) => Some(ApiPart::image(image)),
        Part::Text(_) => None,
    });
    let mut images: Vec<ApiPart<'a>> = images.collect();
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
    let mut content = vec![ApiPart::text(text)];
    content.append(&mut images);
    ChatMessage::Tool { tool_call_id: id, name: answer.tool_name, content }
}

/// The length of an id, in characters.
const LENGTH: usize = 9;

/// The characters of ids.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The ids of a request so far, all different.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
}

impl CallIds {
    /// `id` if it is legal and free, else an id derived from it. The same transcript gives the same ids.
    pub(super) fn legal<'a>(&mut self, id: &'a str) -> Cow<'a, str> {
        let is_legal = id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_legal && self.taken.insert(id.to_owned()) {
            return Cow::Borrowed(id);
        }
        let mut attempt = 0_u64;
        loop {
            let candidate = derived(id, attempt);
            if self.taken.insert(candidate.clone()) {
                return Cow::Owned(candidate);
            }
            attempt += 1;
        }
    }
}

/// An id for a call without one, derived from its index in the answer.
pub(super) fn of_place(answer: &str, place: usize) -> String {
    derived(&format!("{answer}:{place}"), 0)
}

/// Nine characters derived from the text and the number (FNV-1a). Stable over versions, since ids of old requests are in provider caches.
fn derived(text: &str, attempt: u64) -> String {
    let bytes = text.bytes().chain(attempt.to_le_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Texts that differ only at their end change the upper half of FNV little.
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    let base = ALPHABET.len() as u64;
    (0..LENGTH)
        .map(|_| {
            let digit = usize::try_from(hash % base).unwrap_or(0);
            hash /= base;
            char::from(ALPHABET[digit])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_nine_letters_and_digits() {
        let mut ids = CallIds::default();
        let given: Vec<String> = [
            "abcDEF123",
            "call_1|fc_2",
            "",
            "é",
            "abcDEF123",
            "call_1|fc_2",
            "toolu_0123456789",
            "abc-EF123",
        ]
        .into_iter()
        .map(|id| ids.legal(id).into_owned())
        .collect();
        assert_eq!(given[0], "abcDEF123");
        for (place, id) in given.iter().enumerate() {
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
            assert!(!given[..place].contains(id), "{id} twice in {given:?}");
        }
        let mut again = CallIds::default();
        assert_eq!(again.legal("abcDEF123"), given[0].as_str());
        assert_eq!(again.legal("call_1|fc_2"), given[1].as_str());
    }

    #[test]
    fn many_ids_do_not_collide() {
        let mut ids = CallIds::default();
        let count = 20_000;
        let given: HashSet<String> =
            (0..count).map(|number| ids.legal(&format!("call_{number}")).into_owned()).collect();
        assert_eq!(given.len(), count);
        let derived: HashSet<String> = (0..count).map(|place| of_place("cmpl-1", place)).collect();
        assert_eq!(derived.len(), count);
    }

    proptest::proptest! {
        #[test]
        fn any_ids_become_legal_and_distinct(ids in proptest::collection::vec(".{0,12}|[a-z0-9]{9}", 0..20)) {
            let mut legal = CallIds::default();
            let given: Vec<String> = ids.iter().map(|id| legal.legal(id).into_owned()).collect();
            let distinct: HashSet<&String> = given.iter().collect();
            assert_eq!(distinct.len(), given.len());
            assert!(given.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
        }
    }
}
