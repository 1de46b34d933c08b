//! Composes streams of an OpenAI-compatible server.

use serde_json::{Value, json};

/// One event.
#[must_use]
pub fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A piece of an answer.
#[must_use]
pub fn delta(delta: Value) -> String {
    event(&json!({"id": "r1", "object": "chat.completion.chunk", "model": "fake",
                  "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// A piece of text.
#[must_use]
pub fn text(text: &str) -> String {
    delta(json!({"content": text}))
}

/// The beginning of a tool call.
#[must_use]
pub fn call_start(index: usize, id: &str, name: &str) -> String {
    delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                                 "function": {"name": name, "arguments": ""}}]}))
}

/// A piece of a tool call's arguments.
#[must_use]
pub fn call_arguments(index: usize, arguments: &str) -> String {
    delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
}

/// The end of an answer, with tokens of input (`cached` among them) and output.
#[must_use]
pub fn end(reason: &str, (input, cached, output): (u64, u64, u64)) -> String {
    let finish = event(&json!({"id": "r1", "object": "chat.completion.chunk", "model": "fake",
                               "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    let usage = event(&json!({"id": "r1", "object": "chat.completion.chunk", "model": "fake", "choices": [],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                  "prompt_tokens_details": {"cached_tokens": cached}}}));
    format!("{finish}{usage}data: [DONE]\n\n")
}

/// A whole answer of text.
#[must_use]
pub fn answer(words: &str) -> String {
    text(words) + &end("stop", (10, 0, 2))
}

/// A whole answer of tool calls: id, tool, arguments.
#[must_use]
pub fn calls(calls: &[(&str, &str, Value)]) -> String {
    let calls = calls.iter().enumerate().map(|(index, (id, name, arguments))| {
        call_start(index, id, name) + &call_arguments(index, &arguments.to_string())
    });
    calls.collect::<String>() + &end("tool_calls", (10, 0, 5))
}
