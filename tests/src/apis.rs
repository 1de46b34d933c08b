//! Three provider APIs: streams as their servers send them, and checks that a request is legal for them.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{MockServer, sse};

/// A provider API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderApi {
    /// `openai-completions`.
    Chat,
    /// `anthropic-messages`.
    Messages,
    /// `openai-responses`.
    Responses,
}

impl ProviderApi {
    /// All APIs.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Messages, Self::Responses];

    /// The name in `models.json`.
    #[must_use]
    pub fn api(self) -> &'static str {
        match self {
            Self::Chat => "openai-completions",
            Self::Messages => "anthropic-messages",
            Self::Responses => "openai-responses",
        }
    }

    /// Method and path of its requests.
    #[must_use]
    pub fn target(self) -> &'static str {
        match self {
            Self::Chat => "POST /v1/chat/completions",
            Self::Messages => "POST /v1/messages?beta=true",
            Self::Responses => "POST /v1/responses",
        }
    }

    /// A provider of `models.json` behind `server`, with one model of the same name that thinks and accepts images.
    #[must_use]
    pub fn provider(self, server: &MockServer) -> Value {
        json!({"baseUrl": server.base_url(), "api": self.api(), "apiKey": "test-key-1234",
            "models": [{"id": self.model(), "reasoning": true, "input": ["text", "image"],
                "contextWindow": 200_000, "maxTokens": 32_000,
                "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1.25}}]})
    }

    /// The id of that model, and of its provider.
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// A whole answer of text.
    #[must_use]
    pub fn answer(self, text: &str) -> String {
        self.stream(&[Block::Text(text)])
    }

    /// The beginning of such an answer, up to the end of the event with the text.
    ///
    /// # Panics
    /// Fails for a text that JSON writes differently.
    #[must_use]
    pub fn begun(self, text: &str) -> String {
        let whole = self.answer(text);
        let said = whole.find(text).expect("the text in its event");
        let end = whole[said..].find("\n\n").expect("the end of an event") + 2;
        whole[..said + end].to_owned()
    }

    /// An error in the form of this API. `kind` is its type, and for the OpenAI APIs its code too.
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> String {
        let error = json!({"type": kind, "message": message});
        match self {
            Self::Messages => json!({"type": "error", "error": error, "request_id": "req_1"}),
            Self::Chat | Self::Responses => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
            }
        }
        .to_string()
    }

    /// A whole answer of these blocks.
    #[must_use]
    pub fn stream(self, blocks: &[Block<'_>]) -> String {
        match self {
            Self::Chat => chat(blocks),
            Self::Messages => messages(blocks),
            Self::Responses => responses(blocks),
        }
    }

    /// Checks that a request could be sent to a strict server.
    ///
    /// # Panics
    /// Says what is wrong with it.
    pub fn assert_legal(self, body: &Value) {
        match self {
            Self::Chat => chat_is_legal(body),
            Self::Messages => messages_are_legal(body),
            Self::Responses => responses_are_legal(body),
        }
    }
}

/// A block of an answer.
#[derive(Debug, Clone)]
pub enum Block<'a> {
    /// Reasoning, and the signature or encrypted form that goes with it.
    Thinking(&'a str, &'a str),
    /// Text.
    Text(&'a str),
    /// A tool call: id, tool, arguments.
    Call(&'a str, &'a str, Value),
}

fn chat(blocks: &[Block<'_>]) -> String {
    let mut out = String::new();
    let mut calls = 0;
    for block in blocks {
        out += &match block {
            Block::Thinking(text, _) => sse::delta(json!({"reasoning_content": text})),
            Block::Text(text) => sse::text(text),
            Block::Call(id, name, arguments) => {
                calls += 1;
                sse::call_start(calls - 1, id, name) + &sse::call_arguments(calls - 1, &arguments.to_string())
            }
        };
    }
    out + &sse::end(if calls > 0 { "tool_calls" } else { "stop" }, (10, 4, 5))
}

fn named(kind: &str, data: Value) -> String {
    let mut data = data;
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn messages(blocks: &[Block<'_>]) -> String {
    let usage = json!({"input_tokens": 6, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 1});
    let mut out = named(
        "message_start",
        json!({"message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "messages",
            "content": [], "stop_reason": null, "usage": usage}}),
    );
    let mut called = false;
    for (index, block) in blocks.iter().enumerate() {
        let start =
            |content: Value| named("content_block_start", json!({"index": index, "content_block": content}));
        let delta = |delta: Value| named("content_block_delta", json!({"index": index, "delta": delta}));
        out += &match block {
            Block::Thinking(text, signature) => {
                start(json!({"type": "thinking", "thinking": "", "signature": ""}))
                    + &delta(json!({"type": "thinking_delta", "thinking": text}))
                    + &delta(json!({"type": "signature_delta", "signature": signature}))
            }
            Block::Text(text) => {
                start(json!({"type": "text", "text": ""}))
                    + &delta(json!({"type": "text_delta", "text": text}))
            }
            Block::Call(id, name, arguments) => {
                called = true;
                start(json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
                    + &delta(json!({"type": "input_json_delta", "partial_json": arguments.to_string()}))
            }
        };
        out += &named("content_block_stop", json!({"index": index}));
    }
    let reason = if called { "tool_use" } else { "end_turn" };
    out += &named(
        "message_delta",
        json!({"delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 5}}),
    );
    out + &named("message_stop", json!({}))
}

fn responses(blocks: &[Block<'_>]) -> String {
    let mut out = named(
        "response.created",
        json!({"response": {"id": "resp_1", "model": "responses", "status": "in_progress"}}),
    );
    for (index, block) in blocks.iter().enumerate() {
        let added =
            |item: Value| named("response.output_item.added", json!({"output_index": index, "item": item}));
        let done =
            |item: Value| named("response.output_item.done", json!({"output_index": index, "item": item}));
        out += &match block {
            Block::Thinking(text, encrypted) => {
                let id = format!("rs_{index}");
                added(json!({"type": "reasoning", "id": id, "summary": []}))
                    + &named(
                        "response.reasoning_summary_text.delta",
                        json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": text}),
                    )
                    + &done(
                        json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": text}], "encrypted_content": encrypted}),
                    )
            }
            Block::Text(text) => {
                let id = format!("msg_{index}");
                added(
                    json!({"type": "message", "id": id, "role": "assistant", "content": [], "status": "in_progress"}),
                ) + &named(
                    "response.output_text.delta",
                    json!({"item_id": id, "output_index": index, "content_index": 0, "delta": text}),
                ) + &done(
                    json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}),
                )
            }
            Block::Call(call_id, name, arguments) => {
                let (id, arguments) = (format!("fc_{index}"), arguments.to_string());
                let item = |arguments: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments});
                added(item(""))
                    + &named(
                        "response.function_call_arguments.delta",
                        json!({"item_id": id, "output_index": index, "delta": arguments}),
                    )
                    + &named(
                        "response.function_call_arguments.done",
                        json!({"item_id": id, "output_index": index, "arguments": arguments}),
                    )
                    + &done(item(&arguments))
            }
        };
    }
    out + &named(
        "response.completed",
        json!({"response": {"id": "resp_1", "model": "responses", "status": "completed",
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15}}}),
    )
}

fn list<'a>(value: &'a Value, what: &str, body: &Value) -> &'a [Value] {
    value.as_array().unwrap_or_else(|| panic!("{what} is no list in {body}"))
}

fn string<'a>(value: &'a Value, what: &str, body: &Value) -> &'a str {
    let text = value.as_str().unwrap_or_else(|| panic!("{what} is no string in {body}"));
    assert!(!text.is_empty(), "{what} is empty in {body}");
    text
}

fn is_id(id: &str, longest: usize) -> bool {
    !id.is_empty() && id.len() <= longest && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

fn chat_is_legal(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for message in list(&body["messages"], "messages", body) {
        let role = string(&message["role"], "role", body);
        if role == "tool" {
            let id = string(&message["tool_call_id"], "tool_call_id", body);
            let at = open.iter().position(|open| *open == id);
            open.remove(at.unwrap_or_else(|| panic!("nobody called {id} in {body}")));
            string(&message["content"], "the content of a result", body);
            continue;
        }
        assert!(open.is_empty(), "{open:?} are not answered in {body}");
        match role {
            "assistant" => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                assert!(message["content"].is_string() || !calls.is_empty(), "an empty answer in {body}");
                for call in calls {
                    let id = string(&call["id"], "the id of a call", body);
                    assert!(is_id(id, 40) && !open.contains(&id), "the id {id} in {body}");
                    open.push(id);
                    let arguments = string(&call["function"]["arguments"], "arguments", body);
                    assert!(serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()));
                }
            }
            "user" | "system" | "developer" => {
                let content = &message["content"];
                assert!(
                    content.as_str().is_some_and(|text| !text.is_empty())
                        || !list(content, "content", body).is_empty()
                );
            }
            role => panic!("the role {role} in {body}"),
        }
    }
    assert!(open.is_empty(), "{open:?} are not answered in {body}");
}

fn messages_are_legal(body: &Value) {
    assert!(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "no max_tokens in {body}");
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        assert!(budget >= 1024 && body["max_tokens"].as_u64() > Some(budget), "the budget in {body}");
    }
    let messages = list(&body["messages"], "messages", body);
    assert_eq!(messages[0]["role"], "user", "{body}");
    let mut open: HashSet<&str> = HashSet::new();
    let mut markers = 0;
    let blocks = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    for block in blocks(&body["system"]).iter().chain(&blocks(&body["tools"])) {
        markers += usize::from(!block["cache_control"].is_null());
    }
    for message in messages {
        let content = list(&message["content"], "content", body);
        assert!(!content.is_empty(), "an empty message in {body}");
        let results: HashSet<&str> = content
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| string(&block["tool_use_id"], "tool_use_id", body))
            .collect();
        assert_eq!(results, open, "calls and results in {body}");
        open.clear();
        let mut others = false;
        for block in content {
            markers += usize::from(!block["cache_control"].is_null());
            match (string(&message["role"], "role", body), string(&block["type"], "type", body)) {
                ("user", "tool_result") => assert!(!others, "results come first: {body}"),
                (_, "text") => {
                    others = true;
                    assert!(!string(&block["text"], "text", body).trim().is_empty(), "blank text in {body}");
                }
                ("user", "image") => {
                    others = true;
                    string(&block["source"]["data"], "the data of an image", body);
                }
                ("assistant", "thinking") => {
                    string(&block["signature"], "a signature", body);
                }
                ("assistant", "redacted_thinking") => {
                    string(&block["data"], "redacted data", body);
                }
                ("assistant", "tool_use") => {
                    let id = string(&block["id"], "the id of a call", body);
                    assert!(is_id(id, 64) && open.insert(id), "the id {id} in {body}");
                    assert!(block["input"].is_object(), "the input of {id} in {body}");
                }
                (role, kind) => panic!("{kind} in a message of {role}: {body}"),
            }
        }
    }
    assert!(open.is_empty(), "{open:?} are not answered in {body}");
    assert!(markers <= 4, "{markers} cache markers in {body}");
}

fn responses_are_legal(body: &Value) {
    let items = list(&body["input"], "input", body);
    let mut open: Vec<&str> = Vec::new();
    let mut ids: HashSet<&str> = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        if let Some(id) = item["id"].as_str() {
            assert!(is_id(id, 64) && ids.insert(id), "the id {id} in {body}");
        }
        match kind {
            "message" => {
                assert!(open.is_empty(), "{open:?} are not answered in {body}");
                let role = string(&item["role"], "role", body);
                if role != "assistant" && item["content"].as_str().is_some_and(|text| !text.is_empty()) {
                    continue;
                }
                let content = list(&item["content"], "content", body);
                assert!(!content.is_empty(), "an empty message in {body}");
                let expected = if role == "assistant" { "output_text" } else { "input_" };
                for part in content {
                    assert!(string(&part["type"], "type", body).starts_with(expected), "{part} in {body}");
                }
            }
            "reasoning" => {
                let next = items.get(index + 1).unwrap_or_else(|| panic!("reasoning at the end of {body}"));
                let follows = next["role"] == "assistant"
                    || ["function_call", "reasoning"].iter().any(|kind| next["type"] == *kind);
                assert!(follows, "reasoning without what it led to in {body}");
            }
            "function_call" => {
                let id = string(&item["call_id"], "call_id", body);
                assert!(is_id(id, 64) && !open.contains(&id), "the id {id} in {body}");
                assert!(item["id"].as_str().is_none_or(|id| id.starts_with("fc")), "{item} in {body}");
                let arguments = string(&item["arguments"], "arguments", body);
                assert!(serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()));
                open.push(id);
            }
            "function_call_output" => {
                let id = string(&item["call_id"], "call_id", body);
                let at = open.iter().position(|open| *open == id);
                open.remove(at.unwrap_or_else(|| panic!("nobody called {id} in {body}")));
                assert!(item["output"].is_string() || !list(&item["output"], "output", body).is_empty());
            }
            kind => panic!("the item {kind} in {body}"),
        }
    }
    assert!(open.is_empty(), "{open:?} are not answered in {body}");
}
