use std::sync::Arc;

use agentd_protocol::{
    Json,
    model::{Model, ThinkingLevel},
};
use serde_json::json;

use super::*;

const CLAUDE: &str = "anthropic.claude-opus-4-5-20251101-v1:0";
const LLAMA: &str = "meta.llama3-3-70b-instruct-v1:0";

fn model(id: &str, overrides: &Value) -> Model {
    let mut model = json!({
        "id": id, "name": "m", "api": "bedrock-converse-stream", "provider": "amazon-bedrock",
        "baseUrl": "https://bedrock-runtime.us-east-1.amazonaws.com", "input": ["text", "image"],
        "contextWindow": 0, "maxTokens": 1000,
    });
    model.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
    serde_json::from_value(model).unwrap()
}

/// A request without cache markers.
fn request(id: &str, overrides: &Value, messages: &Value) -> Request {
    let messages: Vec<Json<Message>> = serde_json::from_value(messages.clone()).unwrap();
    Request {
        cache_retention: CacheRetention::None,
        ..Request::new(Arc::new(model(id, overrides)), messages)
    }
}

fn encoded(request: &Request) -> Value {
    serde_json::from_slice(&body(request).unwrap()).unwrap()
}

/// Only the messages.
fn check(id: &str, messages: &Value, expected: Value) {
    let body = encoded(&request(id, &json!({}), messages));
    assert_eq!(body["messages"], expected, "{id} {messages}");
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 1000}));
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(id: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "bedrock-converse-stream", "provider": "amazon-bedrock",
        "model": id, "stopReason": "stop", "usage": {}, "timestamp": 0})
}

fn result(id: &str, content: Value, is_error: bool) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "content": content, "isError": is_error,
        "timestamp": 0})
}

fn call(id: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": "t", "arguments": arguments})
}

fn image(mime: &str) -> Value {
    json!({"type": "image", "mimeType": mime, "data": "aGk="})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn prompts_and_the_system_prompt() {
    let messages = json!([{"role": "system", "content": "Be brief."}, user(json!("hi"))]);
    assert_eq!(
        encoded(&request(LLAMA, &json!({}), &messages)),
        json!({"messages": [user(json!([{"text": "hi"}]))], "system": [{"text": "Be brief."}],
            "inferenceConfig": {"maxTokens": 1000}})
    );
    let png = json!({"image": {"format": "png", "source": {"bytes": "aGk="}}});
    check(
        LLAMA,
        &json!([user(json!([
            text("see"),
            image("image/png"),
            image("image/jpg"),
            image("image/tiff"),
            text(" ")
        ]))]),
        json!([user(
            json!([{"text": "see"}, png, {"image": {"format": "jpeg", "source": {"bytes": "aGk="}}},
            {"text": "(image omitted: its type is none of PNG, JPEG, GIF and WebP)"}])
        )]),
    );
    check(LLAMA, &json!([user(json!(" "))]), json!([user(json!([{"text": "<empty>"}]))]));
}

#[test]
fn roles_alternate() {
    let messages = json!([
        user(json!("a")),
        user(json!("b")),
        assistant(LLAMA, json!([text("c")])),
        assistant(LLAMA, json!([call("1", json!({"x": 1}))])),
        result("1", json!([text("r")]), false),
        user(json!("d")),
    ]);
    check(
        LLAMA,
        &messages,
        json!([
            user(json!([{"text": "a"}, {"text": "b"}])),
            {"role": "assistant", "content": [{"text": "c"},
                {"toolUse": {"toolUseId": "1", "name": "t", "input": {"x": 1}}}]},
            user(json!([{"toolResult": {"toolUseId": "1", "content": [{"text": "r"}], "status": "success"}}, {"text": "d"}])),
        ]),
    );
}

#[test]
fn reasoning_goes_back_as_it_came() {
    let thinking = |text: &str, signature: Value, redacted: bool| json!({"type": "thinking", "thinking": text, "thinkingSignature": signature, "redacted": redacted});
    let content = json!([
        thinking("signed", json!("sig"), false),
        thinking("", json!("only"), false),
        thinking("[Reasoning redacted]", json!("AQID"), true),
        thinking("[Reasoning redacted]", json!(""), true),
        thinking("unsigned", Value::Null, false),
        text("said"),
        thinking("at the end", json!("sig"), false),
    ]);
    let reasoning = |text: &str, signature: &str| json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}});
    let redacted = json!({"reasoningContent": {"redactedContent": "AQID"}});
    check(
        CLAUDE,
        &json!([user(json!("a")), assistant(CLAUDE, content.clone()), user(json!("b"))]),
        json!([
            user(json!([{"text": "a"}])),
            {"role": "assistant", "content": [reasoning("signed", "sig"), redacted,
                {"text": "unsigned"}, {"text": "said"}]},
            user(json!([{"text": "b"}])),
        ]),
    );
    let unsigned = |text: &str| json!({"reasoningContent": {"reasoningText": {"text": text}}});
    check(
        LLAMA,
        &json!([user(json!("a")), assistant(LLAMA, content), user(json!("b"))]),
        json!([
            user(json!([{"text": "a"}])),
            {"role": "assistant", "content": [unsigned("signed"), redacted, unsigned("unsigned"), {"text": "said"},
                unsigned("at the end")]},
            user(json!([{"text": "b"}])),
        ]),
    );
}

#[test]
fn results_with_images_and_errors() {
    let calls = json!([call("call|1", json!({"": 1, "a": [{"": 2, "b": 3}]})), call("call|1", json!({}))]);
    let turns = |id: &str, first: Value| {
        json!([
            user(json!("a")),
            assistant(id, calls.clone()),
            result("call|1", first, true),
            result("call|1", json!([]), false),
        ])
    };
    let png = json!({"image": {"format": "png", "source": {"bytes": "aGk="}}});
    let first = json!([text("see"), image("image/png"), image("image/png")]);
    let of = |id: &str| encoded(&request(id, &json!({}), &turns("other", first.clone())));
    let claude = of(CLAUDE);
    assert_eq!(
        claude["messages"][1]["content"],
        json!([{"toolUse": {"toolUseId": "call_1", "name": "t", "input": {"a": [{"b": 3}]}}},
            {"toolUse": {"toolUseId": "call_1_2", "name": "t", "input": {}}}])
    );
    let none = json!({"toolResult": {"toolUseId": "call_1_2", "content": [{"text": "(no tool output)"}],
        "status": "success"}});
    assert_eq!(
        claude["messages"][2]["content"],
        json!([{"toolResult": {"toolUseId": "call_1", "status": "error", "content": [{"text": "see"},
            {"text": "(image attached after the tool results)"}]}}, none,
            {"text": "Images from the error result of tool call call_1 (t):"}, png, png])
    );
    assert_eq!(
        of(LLAMA)["messages"][2]["content"],
        json!([{"toolResult": {"toolUseId": "call_1", "status": "error", "content": [{"text": "see"}, png, png]}}, none])
    );
}

#[test]
fn tools_that_are_gone_are_declared_as_such() {
    let turns = json!([
        user(json!("a")),
        assistant(LLAMA, json!([call("1", json!({})), call("2", json!({}))])),
        result("1", json!([text("r")]), false),
        result("2", json!([text("r")]), false),
    ]);
    let body = encoded(&request(LLAMA, &json!({}), &turns));
    let gone = json!({"toolSpec": {"name": "t", "description": "This tool is not available any more. Do not call it.",
        "inputSchema": {"json": {"type": "object", "properties": {}}}}});
    assert_eq!(body["toolConfig"], json!({"tools": [gone]}));
}

#[test]
fn cache_points() {
    let messages = json!([{"role": "system", "content": "s"}, user(json!("a"))]);
    let marked = |id: &str, retention: CacheRetention, overrides: Value| {
        let request = Request { cache_retention: retention, ..request(id, &overrides, &messages) };
        let body = encoded(&request);
        (body["system"][1].clone(), body["messages"][0]["content"][1].clone())
    };
    let point = json!({"cachePoint": {"type": "default"}});
    let hour = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    assert_eq!(marked(CLAUDE, CacheRetention::Short, json!({})), (point.clone(), point.clone()));
    assert_eq!(marked(CLAUDE, CacheRetention::Long, json!({})), (hour.clone(), hour));
    let none = (Value::Null, Value::Null);
    assert_eq!(marked(CLAUDE, CacheRetention::None, json!({})), none);
    assert_eq!(marked(LLAMA, CacheRetention::Short, json!({})), none);
    let forced = json!({"compat": {"supportsPromptCaching": true}});
    assert_eq!(marked(LLAMA, CacheRetention::Short, forced), (point.clone(), point));
    // Nothing is marked behind an answer.
    let ended = json!([user(json!("a")), assistant(CLAUDE, json!([text("b")]))]);
    let request = Request { cache_retention: CacheRetention::Short, ..request(CLAUDE, &json!({}), &ended) };
    assert!(!encoded(&request).to_string().contains("cachePoint"));
}

#[test]
fn configured_fields_go_where_they_belong() {
    let params = json!({"samplingParams": {"temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "stop_sequences": ["x"],
        "top_k": 5, "serviceTier": {"type": "flex"}, "additionalModelRequestFields": {"custom": 1}},
        "reasoning": true});
    let mut request = request(CLAUDE, &params, &json!([user(json!("a"))]));
    assert_eq!(
        encoded(&request),
        json!({"messages": [user(json!([{"text": "a"}]))], "serviceTier": {"type": "flex"},
            "inferenceConfig": {"maxTokens": 7, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]},
            "additionalModelRequestFields": {"top_k": 5, "custom": 1}})
    );
    request.thinking_level = ThinkingLevel::Low;
    request.model = Arc::new(Model { max_tokens: 8000, ..(*request.model).clone() });
    let body = encoded(&request);
    assert!(body["inferenceConfig"].get("temperature").is_none(), "{body}");
    assert_eq!(body["additionalModelRequestFields"]["thinking"]["budget_tokens"], 2048);
}
