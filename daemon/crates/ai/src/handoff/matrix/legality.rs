//! The rules of the vendors' public documentation for the messages of a request, API by API. Independent of the adapters.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Checks a request's body by the rules of `api`; `what` is for the complaint.
pub(super) fn check(api: &str, body: &Value, what: &str) {
    let rules = Rules { body, what };
    match api {
        "openai-completions" => rules.chat(|id| is_id(id, 64)),
        // Exactly nine letters and digits.
        "mistral-conversations" => {
            rules.chat(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        "openai-responses" | "azure-openai-responses" => rules.responses(),
        "openai-codex-responses" => {
            rules.text(&body["instructions"], "instructions");
            rules.responses();
        }
        "anthropic-messages" => rules.anthropic(),
        "google-generative-ai" | "google-vertex" => rules.google(),
        "bedrock-converse-stream" => rules.bedrock(),
        other => panic!("no rules are written down for {other}"),
    }
}

struct Rules<'a> {
    body: &'a Value,
    what: &'a str,
}

fn is_id(id: &str, longest: usize) -> bool {
    (1..=longest).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

impl<'a> Rules<'a> {
    fn fail(&self, complaint: &str) -> ! {
        panic!("{complaint}, {}: {}", self.what, self.body)
    }

    fn ask(&self, holds: bool, complaint: &str) {
        if !holds {
            self.fail(complaint);
        }
    }

    fn list(&self, value: &'a Value, name: &str) -> &'a [Value] {
        match value.as_array() {
            Some(list) if !list.is_empty() => list,
            _ => self.fail(&format!("{name} is no list, or an empty one")),
        }
    }

    /// A text that is not empty.
    fn text(&self, value: &'a Value, name: &str) -> &'a str {
        match value.as_str() {
            Some(text) if !text.is_empty() => text,
            _ => self.fail(&format!("{name} is no text, or an empty one")),
        }
    }

    /// A text with something to read.
    fn words(&self, value: &'a Value, name: &str) {
        self.ask(!self.text(value, name).trim().is_empty(), &format!("{name} is blank"));
    }

    fn tool_name(&self, value: &'a Value) {
        self.ask(is_id(self.text(value, "a tool's name"), 64), "a tool's name");
    }

    fn arguments(&self, value: &'a Value) {
        let arguments = self.text(value, "arguments");
        self.ask(
            serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()),
            "arguments are no JSON object",
        );
    }

    fn data_url(&self, value: &'a Value) {
        let url = self.text(value, "an image");
        let (kind, data) = url.split_once(";base64,").unwrap_or_default();
        self.ask(kind.starts_with("data:image/") && is_base64(data), "an image is no data URL");
    }

    /// Removes the call that a result answers.
    fn answered(&self, open: &mut Vec<&str>, id: &str) {
        match open.iter().position(|open| *open == id) {
            Some(at) => drop(open.remove(at)),
            None => self.fail(&format!("nobody waits for a result of {id}")),
        }
    }

    fn all_answered(&self, open: &[&str]) {
        self.ask(open.is_empty(), &format!("{open:?} wait for results"));
    }

    /// OpenAI's chat completions, and what speaks them.
    fn chat(&self, is_legal_id: impl Fn(&str) -> bool) {
        let mut open: Vec<&str> = Vec::new();
        for message in self.list(&self.body["messages"], "messages") {
            let role = self.text(&message["role"], "role");
            if role == "tool" {
                self.answered(&mut open, self.text(&message["tool_call_id"], "tool_call_id"));
                if !message["content"].is_array() {
                    self.text(&message["content"], "the content of a result");
                }
                continue;
            }
            self.all_answered(&open);
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                self.ask(role == "assistant", "a call that no answer makes");
                let id = self.text(&call["id"], "the id of a call");
                self.ask(is_legal_id(id) && !open.contains(&id), &format!("the id {id}"));
                open.push(id);
                self.tool_name(&call["function"]["name"]);
                self.arguments(&call["function"]["arguments"]);
            }
            self.ask(["system", "developer", "user", "assistant"].contains(&role), "a role");
            match &message["content"] {
                Value::Null | Value::String(_) if role == "assistant" && !open.is_empty() => {}
                Value::Array(parts) => {
                    self.ask(!parts.is_empty(), "an empty message");
                    for part in parts {
                        match self.text(&part["type"], "the type of a part") {
                            "text" => drop(self.text(&part["text"], "the text of a part")),
                            "image_url" => {
                                self.ask(role == "user", "an image of another role");
                                let url = &part["image_url"];
                                self.data_url(if url.is_string() { url } else { &url["url"] });
                            }
                            "thinking" => self.ask(role == "assistant", "thinking of another role"),
                            other => self.fail(&format!("a part {other}")),
                        }
                    }
                }
                content => drop(self.text(content, "the content of a message")),
            }
        }
        self.all_answered(&open);
        for tool in self.body["tools"].as_array().into_iter().flatten() {
            self.tool_name(&tool["function"]["name"]);
        }
    }

    /// OpenAI's Responses API.
    fn responses(&self) {
        let items = self.list(&self.body["input"], "input");
        let (mut open, mut ids): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = item["id"].as_str() {
                self.ask(is_id(id, 64) && ids.insert(id), &format!("the id {id}"));
            }
            match item["type"].as_str().unwrap_or("message") {
                "message" => {
                    let role = self.text(&item["role"], "role");
                    if role != "assistant" {
                        // An answer may go on after a call; nothing else comes before its output.
                        self.all_answered(&open);
                    }
                    self.ask(["system", "developer", "user", "assistant"].contains(&role), "a role");
                    if item["content"].is_string() {
                        self.text(&item["content"], "the content of a message");
                        continue;
                    }
                    for part in self.list(&item["content"], "the content of a message") {
                        match (role, self.text(&part["type"], "the type of a part")) {
                            ("assistant", "output_text")
                            | ("user" | "system" | "developer", "input_text") => {
                                self.text(&part["text"], "the text of a part");
                            }
                            ("user", "input_image") => self.data_url(&part["image_url"]),
                            (role, other) => self.fail(&format!("a part {other} of {role}")),
                        }
                    }
                }
                "reasoning" => {
                    let next = items.get(index + 1);
                    let follows = |next: &Value| {
                        next["role"] == "assistant"
                            || next["type"] == "function_call"
                            || next["type"] == "reasoning"
                    };
                    self.ask(next.is_some_and(follows), "reasoning without what it led to");
                    self.text(&item["id"], "the id of reasoning");
                }
                "function_call" => {
                    let id = self.text(&item["call_id"], "call_id");
                    self.ask(is_id(id, 64) && !open.contains(&id), &format!("the id {id}"));
                    self.ask(item["id"].as_str().is_none_or(|id| id.starts_with("fc")), "the id of an item");
                    self.tool_name(&item["name"]);
                    self.arguments(&item["arguments"]);
                    open.push(id);
                }
                "function_call_output" => {
                    self.answered(&mut open, self.text(&item["call_id"], "call_id"));
                    if !item["output"].is_string() {
                        self.list(&item["output"], "the output of a call");
                    }
                }
                other => self.fail(&format!("an item {other}")),
            }
        }
        self.all_answered(&open);
    }

    /// Anthropic's Messages API.
    fn anthropic(&self) {
        let messages = self.list(&self.body["messages"], "messages");
        self.ask(messages[0]["role"] == "user", "the first message is not the user's");
        let mut open: HashSet<&str> = HashSet::new();
        for message in messages {
            let role = self.text(&message["role"], "role");
            let blocks = self.list(&message["content"], "the content of a message");
            let results: Vec<&str> = blocks
                .iter()
                .filter(|block| block["type"] == "tool_result")
                .map(|block| self.text(&block["tool_use_id"], "tool_use_id"))
                .collect();
            self.ask(
                results.len() == open.len() && results.iter().all(|id| open.contains(id)),
                "calls and results",
            );
            open.clear();
            let mut others = false;
            for block in blocks {
                let kind = self.text(&block["type"], "the type of a block");
                match (role, kind) {
                    ("user", "tool_result") => {
                        self.ask(!others, "results come first");
                        for part in block["content"].as_array().into_iter().flatten() {
                            self.anthropic_part(part);
                            let is_plain = block["is_error"] != true || part["type"] == "text";
                            self.ask(is_plain, "an error result holds text only");
                        }
                    }
                    (_, "text") | ("user", "image") => self.anthropic_part(block),
                    ("assistant", "thinking") => drop(self.text(&block["signature"], "a signature")),
                    ("assistant", "redacted_thinking") => drop(self.text(&block["data"], "redacted data")),
                    ("assistant", "tool_use") => {
                        let id = self.text(&block["id"], "the id of a call");
                        self.ask(is_id(id, 64) && open.insert(id), &format!("the id {id}"));
                        self.tool_name(&block["name"]);
                        self.ask(block["input"].is_object(), "the input of a call");
                    }
                    (role, kind) => self.fail(&format!("{kind} of {role}")),
                }
                others |= kind != "tool_result";
            }
            let last = blocks.last().map(|block| &block["type"]);
            let ends_thinking = last.is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking");
            self.ask(!ends_thinking, "an answer ends with thinking");
        }
        self.ask(open.is_empty(), "calls wait for results");
        self.ask(
            messages.last().is_some_and(|last| last["role"] == "user"),
            "the last message is not the user's",
        );
    }

    fn anthropic_part(&self, part: &'a Value) {
        if part["type"] == "text" {
            return self.words(&part["text"], "a text");
        }
        let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        self.ask(
            part["source"]["media_type"].as_str().is_some_and(|kind| kinds.contains(&kind)),
            "an image's type",
        );
        self.ask(part["source"]["data"].as_str().is_some_and(is_base64), "an image's data");
    }

    /// Google's `generateContent`.
    fn google(&self) {
        let contents = self.list(&self.body["contents"], "contents");
        self.ask(contents[0]["role"] == "user", "the first turn is not the user's");
        let mut waiting: Vec<(&Value, &Value)> = Vec::new();
        for content in contents {
            let role = self.text(&content["role"], "role");
            self.ask(["user", "model"].contains(&role), "a role");
            let parts = self.list(&content["parts"], "the parts of a turn");
            let answers: Vec<&Value> =
                parts.iter().map(|part| &part["functionResponse"]).filter(|it| !it.is_null()).collect();
            self.ask(
                answers.len() == waiting.len(),
                "as many responses as there are calls, in the turn after them",
            );
            for (answer, (name, id)) in answers.iter().zip(waiting.drain(..)) {
                self.ask(
                    &answer["name"] == name && &answer["id"] == id,
                    "a response for each call, in their order",
                );
                self.ask(answer["response"].is_object(), "a response is an object");
            }
            for part in parts {
                if let Some(signature) = part.get("thoughtSignature") {
                    self.ask(signature.as_str().is_some_and(is_base64), "a signature that is no base64");
                }
                if !part["functionCall"].is_null() {
                    self.ask(role == "model", "a call of the user's");
                    self.tool_name(&part["functionCall"]["name"]);
                    self.ask(part["functionCall"]["args"].is_object(), "args");
                    waiting.push((&part["functionCall"]["name"], &part["functionCall"]["id"]));
                } else if !part["functionResponse"].is_null() {
                    self.ask(role == "user", "a response of the model's");
                } else if !part["inlineData"].is_null() {
                    self.ask(role == "user", "an image of the model's");
                    self.ask(part["inlineData"]["data"].as_str().is_some_and(is_base64), "an image's data");
                } else if part["thoughtSignature"].is_null() {
                    self.text(&part["text"], "the text of a part");
                } else {
                    self.ask(part["text"].is_string(), "a part without any content");
                }
            }
        }
        self.ask(waiting.is_empty(), "calls wait for responses");
        self.ask(
            contents.last().is_some_and(|last| last["role"] == "user"),
            "the last turn is not the user's",
        );
    }

    /// Amazon Bedrock's Converse API.
    fn bedrock(&self) {
        let messages = self.list(&self.body["messages"], "messages");
        let mut open: HashSet<&str> = HashSet::new();
        let mut uses_tools = false;
        for (index, message) in messages.iter().enumerate() {
            let role = self.text(&message["role"], "role");
            self.ask(role == ["user", "assistant"][index % 2], "roles take turns, the user first");
            let blocks = self.list(&message["content"], "the content of a message");
            let mut answered: HashSet<&str> = HashSet::new();
            for block in blocks.iter().filter(|block| !block["toolResult"].is_null()) {
                let id = self.text(&block["toolResult"]["toolUseId"], "toolUseId");
                self.ask(open.contains(id) && answered.insert(id), &format!("a result for {id}"));
            }
            self.ask(answered.len() == open.len(), "calls wait for results");
            open.clear();
            for block in blocks {
                let kinds = block.as_object().map_or(0, serde_json::Map::len);
                self.ask(kinds == 1, "a block has one kind");
                if let Some(text) = block.get("text") {
                    self.words(text, "a text");
                } else if let Some(call) = block.get("toolUse") {
                    self.ask(role == "assistant", "a call of the user's");
                    let id = self.text(&call["toolUseId"], "toolUseId");
                    self.ask(is_id(id, 64) && open.insert(id), &format!("the id {id}"));
                    self.tool_name(&call["name"]);
                    self.ask(call["input"].is_object(), "the input of a call");
                    uses_tools = true;
                } else if let Some(result) = block.get("toolResult") {
                    self.ask(role == "user", "a result of the model's");
                    for part in self.list(&result["content"], "the content of a result") {
                        match part.get("text") {
                            Some(text) => self.words(text, "the text of a result"),
                            None => self.ask(
                                part["json"].is_object() || part["image"].is_object(),
                                "a part of a result",
                            ),
                        }
                    }
                } else if let Some(image) = block.get("image") {
                    self.ask(role == "user", "an image of the model's");
                    self.ask(image["source"]["bytes"].as_str().is_some_and(is_base64), "an image's data");
                } else if block.get("reasoningContent").is_some() {
                    self.ask(role == "assistant", "reasoning of the user's");
                } else {
                    self.ask(block.get("cachePoint").is_some(), "a block of an unknown kind");
                }
            }
        }
        self.ask(open.is_empty(), "calls wait for results");
        self.ask(
            messages.last().is_some_and(|last| last["role"] == "user"),
            "the last message is not the user's",
        );
        self.ask(!uses_tools || self.body["toolConfig"]["tools"].is_array(), "calls without toolConfig");
    }
}

/// The rules do find what is wrong: each of these bodies breaks one.
#[test]
fn illegal_bodies_are_found() {
    let user = |content: Value| json!({"role": "user", "content": content});
    let bodies = [
        ("openai-completions", json!({"messages": [user(json!(""))]})),
        (
            "openai-completions",
            json!({"messages": [user(json!("Hi")), {"role": "assistant", "tool_calls":
                [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]}, user(json!("And?"))]}),
        ),
        ("openai-completions", json!({"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]})),
        (
            "mistral-conversations",
            json!({"messages": [{"role": "assistant", "tool_calls":
                [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "a", "content": "x"}]}),
        ),
        (
            "openai-responses",
            json!({"input": [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}]}),
        ),
        ("openai-responses", json!({"input": [{"type": "reasoning", "id": "rs_1"}]})),
        ("openai-codex-responses", json!({"input": [{"role": "user", "content": "Hi"}]})),
        (
            "anthropic-messages",
            json!({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "x"}]}]}),
        ),
        ("anthropic-messages", json!({"messages": [user(json!([{"type": "text", "text": " "}]))]})),
        (
            "anthropic-messages",
            json!({"messages": [user(json!([{"type": "text", "text": "x"}])), {"role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}, user(json!([{"type": "text", "text": "y"}]))]}),
        ),
        ("google-vertex", json!({"contents": [{"role": "model", "parts": [{"text": "x"}]}]})),
        (
            "google-generative-ai",
            json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts":
                [{"functionCall": {"name": "x", "args": {}}}]}, {"role": "user", "parts": [{"text": "y"}]}]}),
        ),
        (
            "bedrock-converse-stream",
            json!({"messages": [user(json!([{"text": "x"}])), user(json!([{"text": "y"}]))]}),
        ),
        ("bedrock-converse-stream", json!({"messages": [user(json!([{"text": ""}]))]})),
        ("telepathy", json!({})),
    ];
    for (api, body) in bodies {
        let found = std::panic::catch_unwind(|| check(api, &body, "illegal"));
        assert!(found.is_err(), "{api}: {body} is taken for legal");
    }
}
