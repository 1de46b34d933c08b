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
        "openai-completions" | "mistral-conversations" => chat(content, pieces, &mut out),
        "anthropic-messages" => messages(content, pieces, &mut out),
        "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => {
            responses(content, pieces, &mut out);
        }
        "google-generative-ai" | "google-vertex" => google(content, pieces, &mut out),
        "bedrock-converse-stream" => bedrock(content, pieces, &mut out),
        "pi-messages" => pi(content, pieces, &mut out),
        _ => return None,
    }
    Some(out)
}

pub(super) fn event(data: &Value, out: &mut Vec<u8>) {
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

fn google(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    let mut part =
        |part: Value| event(&json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}), out);
    match content {
        Content::Text => pieces.for_each(|piece| part(json!({"text": piece}))),
        Content::Arguments => {
            let arguments: String = pieces.collect();
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            part(json!({"functionCall": {"name": "write", "args": arguments}}));
        }
    }
    let usage = json!({"promptTokenCount": 1, "candidatesTokenCount": 5, "totalTokenCount": 6});
    event(&json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}), out);
}

fn bedrock(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    frame("messageStart", &json!({"role": "assistant"}), out);
    let reason = match content {
        Content::Text => "end_turn",
        Content::Arguments => {
            let call = json!({"toolUse": {"toolUseId": "call_1", "name": "write"}});
            frame("contentBlockStart", &json!({"contentBlockIndex": 0, "start": call}), out);
            "tool_use"
        }
    };
    for piece in pieces {
        let delta = match content {
            Content::Text => json!({"text": piece}),
            Content::Arguments => json!({"toolUse": {"input": piece}}),
        };
        frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": delta}), out);
    }
    frame("contentBlockStop", &json!({"contentBlockIndex": 0}), out);
    frame("messageStop", &json!({"stopReason": reason}), out);
    frame("metadata", &json!({"usage": {"inputTokens": 1, "outputTokens": 5, "totalTokens": 6}}), out);
}

fn pi(content: Content, pieces: &mut dyn Iterator<Item = String>, out: &mut Vec<u8>) {
    event(&json!({"type": "start"}), out);
    let (kind, reason) = match content {
        Content::Text => ("text", "stop"),
        Content::Arguments => ("toolcall", "toolUse"),
    };
    event(
        &json!({"type": format!("{kind}_start"), "contentIndex": 0, "id": "call_1", "toolName": "write"}),
        out,
    );
    for piece in pieces {
        event(&json!({"type": format!("{kind}_delta"), "contentIndex": 0, "delta": piece}), out);
    }
    event(&json!({"type": format!("{kind}_end"), "contentIndex": 0}), out);
    event(&json!({"type": "done", "reason": reason, "usage": {"input": 1, "output": 5}}), out);
}

/// A frame of AWS's binary event streams: lengths, their checksum, headers, payload, checksum.
pub(super) fn frame(kind: &str, payload: &Value, out: &mut Vec<u8>) {
    let payload = payload.to_string();
    let mut headers = Vec::new();
    for (name, value) in
        [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.extend_from_slice(&[name.len() as u8]);
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let start = out.len();
    let total = 16 + headers.len() + payload.len();
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    let checksum = crc32(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    let checksum = crc32(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}

/// The checksum of zip and of AWS's event streams (CRC-32, IEEE 802.3).
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let (mut value, mut bit) = (index as u32, 0);
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc: u32, byte| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8))
}
