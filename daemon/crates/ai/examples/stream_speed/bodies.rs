//! Long answers, as the servers of each API stream them.

use serde_json::{Value, json};

/// What an answer holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Text.
    Text,
    /// One call of the tool `write`, whose arguments these are.
    Arguments,
}

/// The body of an answer whose content comes in these pieces; `None` for an API that is not known here. Where an API has no
/// pieces of arguments, they come as one.
#[must_use]
pub(super) fn body(api: &str, content: Content, pieces: &mut dyn Iterator<Item = String>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match api {
        "openai-completions" => chat(content, pieces, &mut out),
        "anthropic-messages" => messages(content, pieces, &mut out),
        "openai-responses" => responses(content, pieces, &mut out),
        _ => return None,
    }
    Some(out)
}

fn event(data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

fn named(kind: &str, mut data: Value, out: &mut Vec<u8>) {
    data["type"] = json!(kind);
    out.extend_from_slice(format!("event: {kind}\ndata: {data}\n\n").as_bytes());
}

fn chat(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    let mut delta = |delta: Value, reason: Value| {
        event(&json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}), out);
    };
    match content {
        Content::Text => {
            pieces.for_each(|piece| delta(json!({"content": piece}), Value::Null));
            delta(json!({}), json!("stop"));
        }
        Content::Arguments => {
            let function = json!({"name": "write", "arguments": ""});
            delta(json!({"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}), Value::Null);
            for piece in pieces {
                let call = json!({"index": 0, "function": {"arguments": piece}});
                delta(json!({"tool_calls": [call]}), Value::Null);
            }
            delta(json!({}), json!("tool_calls"));
        }
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
}

fn messages(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    let message = json!({"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}});
    named("message_start", json!({"message": message}), out);
    let (block, reason) = match content {
        Content::Text => (json!({"type": "text", "text": ""}), "end_turn"),
        Content::Arguments => {
            (json!({"type": "tool_use", "id": "t", "name": "write", "input": {}}), "tool_use")
        }
    };
    named("content_block_start", json!({"index": 0, "content_block": block}), out);
    for piece in pieces {
        let delta = match content {
            Content::Text => json!({"type": "text_delta", "text": piece}),
            Content::Arguments => json!({"type": "input_json_delta", "partial_json": piece}),
        };
        named("content_block_delta", json!({"index": 0, "delta": delta}), out);
    }
    named("content_block_stop", json!({"index": 0}), out);
    named("message_delta", json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}), out);
    named("message_stop", json!({}), out);
}

fn responses(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    named("response.created", json!({"response": {"id": "r", "status": "in_progress"}}), out);
    let (item, kind) = match content {
        Content::Text => {
            (json!({"type": "message", "id": "i", "role": "assistant"}), "response.output_text.delta")
        }
        Content::Arguments => {
            let item =
                json!({"type": "function_call", "id": "i", "call_id": "c", "name": "write", "arguments": ""});
            (item, "response.function_call_arguments.delta")
        }
    };
    named("response.output_item.added", json!({"output_index": 0, "item": item}), out);
    let mut whole = String::new();
    for piece in pieces {
        named(kind, json!({"item_id": "i", "output_index": 0, "content_index": 0, "delta": piece}), out);
        whole.push_str(&piece);
    }
    let mut done = item;
    match content {
        Content::Text => done["content"] = json!([{"type": "output_text", "text": whole}]),
        Content::Arguments => done["arguments"] = json!(whole),
    }
    named("response.output_item.done", json!({"output_index": 0, "item": done}), out);
    named("response.completed", json!({"response": {"id": "r", "status": "completed"}}), out);
}
