//! Requests of this API: the stored transcript, which the gateway makes legal for the model behind it.

use agentd_protocol::{
    Json,
    message::{Message, MessageContent},
    model::ThinkingLevel,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{CacheRetention, Request, handoff::prompt_text, providers::request_parts::sampling_params};

/// Stand for images that the model must not or cannot see (the texts are pi's).
const BLOCKED: &str = "Image reading is disabled.";
const BLIND_PROMPT: &str = "(image omitted: model does not support images)";
const BLIND_RESULT: &str = "(tool image omitted: model does not support images)";

/// The texts in place of the images of prompts and results.
#[derive(Clone, Copy)]
struct Hidden {
    in_prompts: &'static str,
    in_results: &'static str,
}

impl Hidden {
    /// `None` if the model may see images.
    fn of(request: &Request) -> Option<Self> {
        if request.block_images {
            Some(Self { in_prompts: BLOCKED, in_results: BLOCKED })
        } else {
            let blind = Self { in_prompts: BLIND_PROMPT, in_results: BLIND_RESULT };
            (!request.model.sees_images()).then_some(blind)
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    context: Context<'a>,
    options: Map<String, Value>,
}

#[derive(Serialize)]
struct Context<'a> {
    messages: Vec<Sent<'a>>,
}

/// A message as it is stored, or one made of a kind that the gateway does not know.
#[derive(Serialize)]
#[serde(untagged)]
enum Sent<'a> {
    Stored(&'a Json<Message>),
    Made(Value),
}

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.messages.len());
    let hidden = Hidden::of(request);
    for message in &request.messages {
        messages.extend(sent(message, hidden)?);
    }
    let body = Body { model: &request.model.id, context: Context { messages }, options: options(request) };
    serde_json::to_vec(&body).map(Bytes::from)
}

fn options(request: &Request) -> Map<String, Value> {
    let model = &*request.model;
    let mut options = Map::new();
    let mut set = |name: &str, value: Value| {
        options.insert(name.to_owned(), value);
    };
    if model.reasoning && request.thinking_level != ThinkingLevel::Off {
        set("reasoning", json!(request.thinking_level.as_str()));
    }
    match request.cache_retention {
        CacheRetention::None => set("cacheRetention", json!("none")),
        CacheRetention::Short => {}
        CacheRetention::Long => set("cacheRetention", json!("long")),
    }
    if !request.session_id.is_empty() {
        set("sessionId", json!(request.session_id));
    }
    options.extend(sampling_params(request));
    options
}

/// The form in which a message is sent; `None` for unknown kinds and for messages that the model must not see.
fn sent(message: &Json<Message>, hidden: Option<Hidden>) -> Result<Option<Sent<'_>>, serde_json::Error> {
    let Some(known) = message.get() else { return Ok(None) };
    let made = |content: Value, timestamp: i64| {
        Some(Sent::Made(json!({ "role": "user", "content": content, "timestamp": timestamp })))
    };
    let text = |timestamp: i64| prompt_text(known).and_then(|text| made(json!(text), timestamp));
    let sent = match known {
        Message::BashExecution(bash) => text(bash.timestamp),
        Message::BranchSummary(branch) => text(branch.timestamp),
        Message::CompactionSummary(compaction) => text(compaction.timestamp),
        Message::Custom(custom) if matches!(custom.content, MessageContent::Nothing) => None,
        Message::Custom(custom) => {
            let mut content = serde_json::to_value(&custom.content)?;
            if let Some(hidden) = hidden {
                hide_images(&mut content, hidden.in_prompts);
            }
            made(content, custom.timestamp)
        }
        Message::System(_) | Message::Assistant(_) => Some(Sent::Stored(message)),
        Message::User(_) | Message::ToolResult(_) => match hidden {
            None => Some(Sent::Stored(message)),
            Some(hidden) => {
                let is_result = matches!(known, Message::ToolResult(_));
                let mut value: Value = serde_json::from_str(message.text())?;
                let text = if is_result { hidden.in_results } else { hidden.in_prompts };
                hide_images(&mut value["content"], text);
                Some(Sent::Made(value))
            }
        },
    };
    Ok(sent)
}

/// Replaces each image of a content by a text.
fn hide_images(content: &mut Value, text: &str) {
    for block in content.as_array_mut().into_iter().flatten() {
        if block["type"] == "image" {
            *block = json!({ "type": "text", "text": text });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::model::Model;

    use super::*;

    #[test]
    fn the_transcript_goes_out_as_it_is() {
        let image = json!({"type": "image", "data": "aW1n", "mimeType": "image/png"});
        let stored = json!([
            {"role": "system", "content": "Be brief.", "toolsAdded": [{"name": "ls", "description": ""}], "timestamp": 1},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, image], "timestamp": 2},
            {"role": "assistant", "content": [], "api": "a", "provider": "p", "model": "m", "stopReason": "stop", "odd": [1.0], "timestamp": 3},
        ]);
        let mut messages: Vec<Json<Message>> = serde_json::from_value(stored.clone()).unwrap();
        let derived = json!([
            {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0, "cancelled": false, "truncated": false, "timestamp": 4},
            {"role": "bashExecution", "command": "x", "output": "", "cancelled": false, "truncated": false, "excludeFromContext": true, "timestamp": 5},
            {"role": "custom", "customType": "t", "content": [image], "display": true, "timestamp": 6},
        ]);
        messages.extend(serde_json::from_value::<Vec<Json<Message>>>(derived).unwrap());
        let input = vec!["text".into(), "image".into()];
        let model = Model { id: "cheap".into(), reasoning: true, input, ..Model::placeholder() };
        let mut request = Request::new(Arc::new(model), messages);
        request.thinking_level = ThinkingLevel::High;
        request.session_id = "s-1".into();
        let encoded =
            |request: &Request| -> Value { serde_json::from_slice(&body(request).unwrap()).unwrap() };
        let mut expected = stored;
        expected.as_array_mut().unwrap().extend([
            json!({"role": "user", "content": "Ran `ls`\n```\na\n```", "timestamp": 4}),
            json!({"role": "user", "content": [image], "timestamp": 6}),
        ]);
        assert_eq!(
            encoded(&request),
            json!({"model": "cheap", "context": {"messages": expected},
                "options": {"reasoning": "high", "sessionId": "s-1"}})
        );
        request.block_images = true;
        request.thinking_level = ThinkingLevel::Off;
        request.cache_retention = CacheRetention::Long;
        let hidden = encoded(&request);
        let blocked = json!({"type": "text", "text": BLOCKED});
        assert_eq!(hidden["context"]["messages"][1]["content"][1], blocked);
        assert_eq!(hidden["context"]["messages"][4]["content"], json!([blocked]));
        assert_eq!(hidden["options"], json!({"cacheRetention": "long", "sessionId": "s-1"}));
    }
}
