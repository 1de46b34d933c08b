//! Encodes the turns of a transcript as input items of the responses API.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    api_types::{CallOutput, InputItem, InputMessage, InputPart as ApiPart},
    signature::{TextSignature, reasoning_item},
};
use crate::{
    handoff::{AssistantPart, Part, ToolAnswer, Turn},
    providers::call_id::{hash, sanitized},
};

/// Encodes a transcript. `system_role` is `system` or `developer`.
pub(super) fn input<'a>(
    prompt: &'a str,
    turns: &'a [Turn<'a>],
    system_role: &'static str,
) -> Vec<InputItem<'a>> {
    let mut encoder = Encoder::default();
    encoder.items.reserve(turns.len() + 1);
    if !prompt.is_empty() {
        encoder.items.push(InputItem::System { role: system_role, content: prompt });
    }
    for turn in turns {
        match turn {
            Turn::System(text) => encoder.items.push(InputItem::System { role: system_role, content: text }),
            Turn::User(parts) => encoder.items.push(InputItem::user(parts.iter().map(part).collect())),
            Turn::Assistant(parts) => encoder.assistant(parts),
            Turn::Results(answers) => encoder.results(answers),
        }
    }
    encoder.items
}

/// Encodes turns. Each item depends only on the items before it, so that a longer transcript begins with the same bytes, by which providers
/// cache.
#[derive(Default)]
struct Encoder<'a> {
    items: Vec<InputItem<'a>>,
    /// The item ids so far. The API refuses duplicates.
    item_ids: HashSet<Cow<'a, str>>,
    /// The call ids so far, each with the last number that was appended to it.
    call_ids: HashMap<String, usize>,
    /// The number of messages without a usable id.
    nameless: usize,
    /// The calls that wait for results: their ids in the transcript and in the request.
    waiting: Vec<(&'a str, String)>,
}

impl<'a> Encoder<'a> {
    fn assistant(&mut self, parts: &'a [AssistantPart<'a>]) {
        // The API refuses reasoning without the message or call that follows it.
        let end = parts.iter().rposition(|part| !matches!(part, AssistantPart::Thinking { .. }));
        for part in &parts[..end.map_or(0, |last| last + 1)] {
            match part {
                AssistantPart::Text { text, signature } => self.text(text, *signature),
                AssistantPart::Thinking { signature, .. } => {
                    if let Some(item) = signature.and_then(reasoning_item) {
                        self.reasoning(item);
                    }
                }
                AssistantPart::ToolCall { id, name, arguments, .. } => {
                    let (call, item) = split_call_id(id);
                    let call_id = self.call_id(call);
                    self.waiting.push((id, call_id.clone()));
                    let item = item.filter(|item| is_item_id(item)).map(Cow::Borrowed);
                    let item = item.filter(|item| self.item_ids.insert(item.clone()));
                    self.items.push(InputItem::call(item, call_id, name, arguments));
                }
            }
        }
    }

    fn text(&mut self, text: &'a str, signature: Option<&str>) {
        let signature = signature.and_then(TextSignature::read);
        let (id, phase) = signature.map_or((None, None), |signature| (Some(signature.id), signature.phase));
        let id = id.filter(|id| self.item_ids.insert(id.clone().into()));
        let id = id.unwrap_or_else(|| self.message_id());
        self.items.push(InputItem::Message(InputMessage::new(text, id, phase)));
    }

    fn reasoning(&mut self, item: &'a RawValue) {
        #[derive(Deserialize)]
        struct Id<'a> {
            #[serde(borrow)]
            id: Option<Cow<'a, str>>,
        }
        let id = serde_json::from_str::<Id<'a>>(item.get()).ok().and_then(|item| item.id);
        if id.is_none_or(|id| id.is_empty() || self.item_ids.insert(id)) {
            self.items.push(InputItem::Reasoning(item));
        }
    }

    fn results(&mut self, answers: &'a [ToolAnswer<'a>]) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for answer in answers {
            // Results come in the order of the calls.
            if let Some(at) = waiting.iter().position(|(id, _)| *id == answer.call_id) {
                let (_, call_id) = waiting.remove(at);
                self.items.push(InputItem::output(call_id, output(&answer.parts)));
            }
        }
    }

    /// An id for a message without one.
    fn message_id(&mut self) -> String {
        loop {
            let id = format!("msg_pi_{}", self.nameless);
            self.nameless += 1;
            if self.item_ids.insert(id.clone().into()) {
                return id;
            }
        }
    }

    /// The id for a call: `wish`, unless another call has it.
    fn call_id(&mut self, wish: &str) -> String {
        let wish = if wish.is_empty() { "call" } else { wish };
        let mut number = match self.call_ids.get(wish) {
            None => {
                self.call_ids.insert(wish.to_owned(), 1);
                return wish.to_owned();
            }
            Some(number) => *number,
        };
        loop {
            number += 1;
            let suffix = format!("_{number}");
            let room = if wish.len() > MAX_CALL_ID { wish.len() } else { MAX_CALL_ID - suffix.len() };
            let kept =
                wish.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= room).last();
            let id = format!("{}{suffix}", &wish[..kept.unwrap_or(0)]);
            if !self.call_ids.contains_key(&id) {
                self.call_ids.insert(wish.to_owned(), number);
                self.call_ids.insert(id.clone(), 1);
                return id;
            }
        }
    }
}

fn part<'a>(part: &'a Part<'a>) -> ApiPart<'a> {
    match part {
        Part::Text(text) => ApiPart::InputText { text },
        Part::Image(image) => ApiPart::image(image),
    }
}

/// The output of a tool: text, unless it has images.
fn output<'a>(parts: &'a [Part<'a>]) -> CallOutput<'a> {
    if parts.iter().any(|part| matches!(part, Part::Image(_))) {
        return CallOutput::Parts(parts.iter().map(part).collect());
    }
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_ref()),
            Part::Image(_) => None,
        })
        .collect();
    CallOutput::Text(match texts[..] {
        [] => Cow::Borrowed("(no tool output)"),
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(texts.join("\n")),
    })
}

/// The longest id that OpenAI takes, in bytes.
pub(super) const MAX_CALL_ID: usize = 64;

/// The id of another model's call for this API, with a made-up item id.
pub(super) fn normalized_call_id(id: &str) -> String {
    match id.split_once('|') {
        Some((call, item)) => format!("{}|fc_{}", shortened(call), hash(item)),
        None => shortened(id),
    }
}

/// Both parts of an id: call and item.
pub(super) fn split_call_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}

/// Whether a text is a legal item id of a call, the only kind that the API accepts for calls.
pub(super) fn is_item_id(id: &str) -> bool {
    id.len() <= MAX_CALL_ID && id.starts_with("fc") && sanitized(id) == id
}

/// Makes a part of an id legal and short enough; different ids stay different.
fn shortened(part: &str) -> String {
    let mut legal = sanitized(part);
    if legal.is_empty() {
        return format!("call_{}", hash(part));
    }
    if legal.len() > MAX_CALL_ID {
        legal.truncate(MAX_CALL_ID - 9);
        legal = format!("{legal}_{}", hash(part));
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_models_become_legal() {
        assert_eq!(normalized_call_id("call_1"), "call_1");
        assert_eq!(normalized_call_id("toolu/1:x"), "toolu_1_x");
        assert_eq!(normalized_call_id(""), format!("call_{}", hash("")));
        let item = normalized_call_id("call.1|fc_abc");
        assert_eq!(item, format!("call_1|fc_{}", hash("fc_abc")));
        assert!(is_item_id(split_call_id(&item).1.unwrap()));
        let long = "é".repeat(80);
        assert_eq!(normalized_call_id(&long).len(), MAX_CALL_ID);
        assert_ne!(normalized_call_id(&long), normalized_call_id(&format!("{long}x")));
        assert_eq!(normalized_call_id(&"a".repeat(MAX_CALL_ID)), "a".repeat(MAX_CALL_ID));
    }

    #[test]
    fn ids_have_two_parts() {
        assert_eq!(split_call_id("a|b|c"), ("a", Some("b|c")));
        assert_eq!(split_call_id("a|"), ("a", None));
        assert_eq!(split_call_id("a"), ("a", None));
        assert!(is_item_id("fc-1") && !is_item_id("call_1") && !is_item_id("fc 1"));
    }
}
