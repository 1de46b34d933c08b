//! The JSON of an answer while it streams: text that grows by what each delta adds.

use std::borrow::Cow;

use agentd_protocol::message::{AssistantMessage, ContentBlock, Message};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arguments::StreamedArguments;

/// An answer so far, as JSON. A part that was written once is only copied from then on.
#[derive(Debug)]
pub(super) struct StreamedAnswer {
    blocks: Vec<Block>,
    /// From the end of the content to the usage.
    middle: String,
    usage: String,
    /// From the usage to the end.
    tail: String,
}

/// A block of the content.
#[derive(Debug)]
enum Block {
    /// Text or thinking: everything but [`TEXT_END`].
    Text(String),
    /// A tool call: everything before its arguments, and the arguments.
    Call(String, StreamedArguments),
    /// A complete block.
    Whole(String),
}

/// The end of a block of text or thinking.
const TEXT_END: &str = "\"}";

/// A `message_update`, as far as it is needed here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow)]
    usage: &'a RawValue,
    #[serde(borrow)]
    assistant_message_event: UpdatePart<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdatePart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    content_index: usize,
    #[serde(default, borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_call: Option<&'a RawValue>,
}

impl StreamedAnswer {
    /// An answer that begins, or one that is joined in the middle. Arguments that are streaming then stay unchanged until their call
    /// is complete: their deltas continue a JSON text whose beginning is unknown.
    pub(super) fn of(message: &AssistantMessage) -> Option<Self> {
        let blocks: Option<Vec<Block>> = message.content.iter().map(Block::of).collect();
        let mut tail = format!(",\"stopReason\":\"stop\",\"timestamp\":{}", message.timestamp);
        for (name, value) in
            [("responseModel", &message.response_model), ("responseId", &message.response_id)]
        {
            if let Some(value) = value {
                tail.push_str(&format!(",\"{name}\":{}", json(value)?));
            }
        }
        tail.push('}');
        let AssistantMessage { api, provider, model, usage, .. } = message;
        Some(Self {
            blocks: blocks?,
            middle: format!(
                "],\"api\":{},\"provider\":{},\"model\":{},\"usage\":",
                json(api)?,
                json(provider)?,
                json(model)?
            ),
            usage: json(usage)?,
            tail,
        })
    }

    /// Adds an update; false when it does not fit the answer so far.
    pub(super) fn add(&mut self, update: &Update<'_>) -> bool {
        self.usage.clear();
        self.usage.push_str(update.usage.get());
        let UpdatePart { kind, content_index: at, delta, id, tool_name, tool_call } =
            &update.assistant_message_event;
        let begins = match (&**kind, id, tool_name) {
            ("text_start", ..) => Some(Block::Text("{\"type\":\"text\",\"text\":\"".into())),
            ("thinking_start", ..) => Some(Block::Text("{\"type\":\"thinking\",\"thinking\":\"".into())),
            ("toolcall_start", Some(id), Some(name)) => Some(Block::call(id, name)),
            _ => None,
        };
        if let Some(block) = begins {
            let fits = *at == self.blocks.len();
            if fits {
                self.blocks.push(block);
            }
            return fits;
        }
        let Some(block) = self.blocks.get_mut(*at) else { return false };
        match (block, delta, tool_call) {
            (Block::Text(text), Some(delta), _) => text.push_str(inner(delta.get())),
            (Block::Call(_, arguments), Some(delta), _) => {
                let Ok(delta) = serde_json::from_str::<Cow<'_, str>>(delta.get()) else { return false };
                arguments.push(&delta);
            }
            (block, _, Some(call)) => *block = Block::Whole(call.get().to_owned()),
            _ => {}
        }
        true
    }

    /// Appends the message to `out`.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("{\"role\":\"assistant\",\"content\":[");
        for (index, block) in self.blocks.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match block {
                Block::Text(text) => {
                    out.push_str(text);
                    out.push_str(TEXT_END);
                }
                Block::Call(head, arguments) => {
                    out.push_str(head);
                    arguments.write(out);
                    out.push('}');
                }
                Block::Whole(block) => out.push_str(block),
            }
        }
        for part in [&self.middle, &self.usage, &self.tail] {
            out.push_str(part);
        }
    }
}

impl Block {
    fn of(block: &ContentBlock) -> Option<Self> {
        let whole = json(block)?;
        Some(match block {
            ContentBlock::Text { text_signature: None, .. }
            | ContentBlock::Thinking { thinking_signature: None, redacted: None, .. } => {
                match whole.strip_suffix(TEXT_END) {
                    Some(text) => Self::Text(text.to_owned()),
                    None => Self::Whole(whole),
                }
            }
            _ => Self::Whole(whole),
        })
    }

    fn call(id: &RawValue, name: &RawValue) -> Self {
        let head = format!("{{\"type\":\"toolCall\",\"id\":{id},\"name\":{name},\"arguments\":");
        Self::Call(head, StreamedArguments::default())
    }
}

/// The assistant message of a JSON text.
pub(super) fn assistant(text: &str) -> Option<AssistantMessage> {
    match agentd_protocol::parse_json(text) {
        Ok(Message::Assistant(message)) => Some(message),
        _ => None,
    }
}

/// A JSON string without its quotes, still escaped, to be inserted into another string.
fn inner(string: &str) -> &str {
    string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

fn json<T: Serialize>(value: &T) -> Option<String> {
    match serde_json::to_string(value) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::error!(%error, "cannot write an answer so far");
            None
        }
    }
}
