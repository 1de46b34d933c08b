use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};

use super::*;
use crate::{Credentials, Secret, providers::openai_completions::headers::headers};

mod switches;

fn model(overrides: Value) -> Model {
    let mut model = json!({
        "id": "m", "name": "m", "api": "openai-completions", "provider": "local",
        "baseUrl": "http://127.0.0.1:8080/v1/", "reasoning": false, "input": ["text", "image"],
        "contextWindow": 0, "maxTokens": 0,
    });
    model.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
    serde_json::from_value(model).unwrap()
}

fn request(model_overrides: Value, messages: Value) -> Request {
    let messages: Vec<Json<Message>> = serde_json::from_value(messages).unwrap();
    Request {
        session_id: "session-1".into(),
        credentials: Credentials {
            api_key: Some(Secret::new("key-1234")),
            headers: Vec::new(),
            ..Credentials::default()
        },
        ..Request::new(Arc::new(model(model_overrides)), messages)
    }
}

fn encoded(request: &Request, retention: CacheRetention) -> Value {
    let request = Request { cache_retention: retention, ..request.clone() };
    serde_json::from_slice(&body(&request, &Compat::of(&request.model)).unwrap()).unwrap()
}

fn check(model_overrides: Value, messages: Value, expected: Value) {
    assert_eq!(encoded(&request(model_overrides, messages), CacheRetention::Short), expected);
}

/// Only the messages.
fn check_messages(model_overrides: Value, messages: Value, expected: Value) {
    let body = encoded(&request(model_overrides, messages), CacheRetention::Short);
    assert_eq!(body["messages"], expected);
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}})
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "openai-completions", "provider": "local", "model": "m",
        "stopReason": "toolUse"})
}

fn result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})
}

fn api_call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}})
}

#[test]
fn a_whole_request() {
    let system = json!({"role": "system", "content": "", "sections": {"a": "One.", "b": "Two."},
        "toolsAdded": [{"name": "bash", "description": "runs", "parameters": {"type": "object"},
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"}}]});
    check(
        json!({"maxTokens": 1000}),
        json!([
            system,
            {"role": "user", "content": [text("hi")]},
            answer(json!([text("Look"), text("ing."), call("c1"), call("c2")])),
            result("c1", json!([text("a"), text("b")])),
            result("c2", json!([])),
        ]),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "One.\n\nTwo."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "Looking.", "tool_calls": [api_call("c1"), api_call("c2")]},
                {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
                {"role": "tool", "tool_call_id": "c2", "content": "(no tool output)"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "store": false,
            "max_completion_tokens": 1000,
            "tools": [{"type": "function", "function": {"name": "bash", "description": "runs", "parameters": {"type": "object"}}}],
        }),
    );
}

#[test]
fn images_go_with_prompts_and_follow_tool_batches() {
    let url = "data:image/png;base64,AAAA";
    let wire_image = json!({"type": "image_url", "image_url": {"url": url}});
    let messages = json!([
        {"role": "user", "content": [text("see"), image()]},
        answer(json!([call("c1"), call("c2")])),
        result("c1", json!([image()])),
        result("c2", json!([text("out"), image()])),
        {"role": "user", "content": "and?"},
    ]);
    check_messages(
        json!({}),
        messages.clone(),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "see"}, wire_image]},
            {"role": "assistant", "content": null, "tool_calls": [api_call("c1"), api_call("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "(see attached image)"},
            {"role": "tool", "tool_call_id": "c2", "content": "out"},
            {"role": "user", "content": [{"type": "text", "text": "Attached image(s) from tool result:"}, wire_image, wire_image]},
            {"role": "user", "content": "and?"},
        ]),
    );
    let blind = "(tool image omitted: model does not support images)";
    let body = encoded(&request(json!({"input": ["text"]}), messages), CacheRetention::Short);
    assert_eq!(body["messages"][2]["content"], blind);
    assert_eq!(body["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn odd_servers_get_what_they_want() {
    let messages = json!([
        {"role": "user", "content": "q"},
        answer(json!([call("c1")])),
        result("c1", json!([text("out")])),
        {"role": "user", "content": "again"},
    ]);
    let compat = json!({"requiresToolResultName": true, "requiresAssistantAfterToolResult": true,
        "requiresNonNullAssistantContent": true, "requiresToolsWithToolHistory": true, "supportsStore": false,
        "supportsUsageInStreaming": false, "vllmPriority": 2, "openRouterRouting": {"only": ["x"]},
        "vercelGatewayRouting": {"order": ["y"]}});
    check(
        json!({"compat": compat}),
        messages,
        json!({
            "model": "m",
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "", "tool_calls": [api_call("c1")]},
                {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "out"},
                {"role": "assistant", "content": "I have processed the tool results."},
                {"role": "user", "content": "again"},
            ],
            "stream": true,
            "provider": {"only": ["x"]},
            "providerOptions": {"gateway": {"order": ["y"]}},
            "priority": 2,
            "tools": [],
        }),
    );
}

#[test]
fn reasoning_goes_back_in_the_field_it_came_in() {
    let thinking =
        |signature: &str| json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature});
    let check = |compat: Value, content: Value, expected: Value| {
        check_messages(
            json!({"reasoning": true, "compat": compat}),
            json!([answer(content)]),
            json!([expected]),
        );
    };
    check(
        json!({}),
        json!([thinking("reasoning_content"), thinking("reasoning_content"), text("a")]),
        json!({"role": "assistant", "content": "a", "reasoning_content": "hm\nhm"}),
    );
    check(json!({}), json!([thinking("unknown"), text("a")]), json!({"role": "assistant", "content": "a"}));
    check(
        json!({}),
        json!([thinking("[{\"type\":\"reasoning.encrypted\",\"data\":\"d\"}]"), text("a")]),
        json!({"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}),
    );
    check(
        json!({"requiresThinkingAsText": true}),
        json!([thinking("reasoning"), text("a")]),
        json!({"role": "assistant", "content": [{"type": "text", "text": "hm"}, {"type": "text", "text": "a"}]}),
    );
    check(
        json!({"requiresReasoningContentOnAssistantMessages": true}),
        json!([text("a")]),
        json!({"role": "assistant", "content": "a", "reasoning_content": ""}),
    );
    // Reasoning alone is no answer.
    check_messages(json!({"reasoning": true}), json!([answer(json!([thinking("reasoning")]))]), json!([]));
}

#[test]
fn reasoning_models_have_a_developer_and_a_limit() {
    let messages =
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1234567"}]);
    let mut request = request(
        json!({"reasoning": true, "maxTokens": 5000, "contextWindow": 10_000,
            "compat": {"maxTokensField": "max_tokens"}, "thinkingLevelMap": {"high": "max"}}),
        messages,
    );
    request.thinking_level = ThinkingLevel::High;
    let body = encoded(&request, CacheRetention::Short);
    assert_eq!(body["messages"][0], json!({"role": "developer", "content": "Be brief."}));
    assert_eq!((&body["max_tokens"], &body["reasoning_effort"]), (&json!(5000), &json!("max")));
}

#[test]
fn caches_are_asked_for_as_the_server_knows_it() {
    let messages = json!([
        {"role": "system", "content": "S", "toolsAdded": [{"name": "a"}, {"name": "b"}]},
        {"role": "user", "content": "q"},
    ]);
    let openrouter =
        json!({"id": "anthropic/x", "provider": "openrouter", "baseUrl": "https://openrouter.ai/api/v1"});
    let marked = request(openrouter, messages.clone());
    let body = encoded(&marked, CacheRetention::Long);
    let marker = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"type": "text", "text": "S", "cache_control": marker}])
    );
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "text", "text": "q", "cache_control": marker}])
    );
    assert_eq!(
        (&body["tools"][0]["cache_control"], &body["tools"][1]["cache_control"]),
        (&Value::Null, &marker)
    );
    assert_eq!(encoded(&marked, CacheRetention::None)["messages"][0]["content"], "S");

    let key = |overrides: Value, retention: CacheRetention| {
        let body = encoded(&request(overrides, messages.clone()), retention);
        (body["prompt_cache_key"].clone(), body["prompt_cache_retention"].clone())
    };
    let openai = json!({"baseUrl": "https://api.openai.com/v1"});
    assert_eq!(key(openai.clone(), CacheRetention::Short), (json!("session-1"), Value::Null));
    assert_eq!(key(openai.clone(), CacheRetention::Long), (json!("session-1"), json!("24h")));
    assert_eq!(key(openai, CacheRetention::None), (Value::Null, Value::Null));
    assert_eq!(key(json!({}), CacheRetention::Short), (Value::Null, Value::Null));
    assert_eq!(
        key(json!({"compat": {"promptCacheKeyMode": "enabled"}}), CacheRetention::Short).0,
        "session-1"
    );
}

#[test]
fn strict_tools_where_they_are_known() {
    let tool = |parameters: Value| {
        json!({"name": "t", "description": "", "parameters": parameters,
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"}})
    };
    let good = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let bad = json!({"type": "object", "properties": {"a": {"oneOf": []}}});
    let system = json!([{"role": "system", "content": "", "toolsAdded": [tool(good), {"name": "bad", "description": "", "parameters": bad}]}]);
    let body =
        encoded(&request(json!({"compat": {"supportsStrictMode": true}}), system), CacheRetention::Short);
    assert_eq!(body["tools"][0]["function"]["strict"], json!(true));
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["a"]));
    assert_eq!(body["tools"][1]["function"]["strict"], Value::Null);
    assert_eq!(body["tools"][1]["function"]["parameters"], bad);
}

#[test]
fn configured_parameters_win() {
    let params = json!({"temperature": 0.5, "store": true, "model": "other", "stream_options": null});
    let body = encoded(&request(json!({"samplingParams": params}), json!([])), CacheRetention::Short);
    assert_eq!(
        body,
        json!({"model": "other", "messages": [], "stream": true, "temperature": 0.5, "store": true, "stream_options": null})
    );
    let by_level = json!({"high": {"temperature": 1, "top_p": 0.9}});
    let overrides =
        json!({"samplingParams": {"temperature": 0.5, "seed": 1}, "samplingParamsByThinkingLevel": by_level});
    let mut request = request(overrides, json!([]));
    for (level, expected) in [
        (ThinkingLevel::High, [json!(1), json!(0.9), json!(1)]),
        (ThinkingLevel::Low, [json!(0.5), Value::Null, json!(1)]),
    ] {
        request.thinking_level = level;
        let body = encoded(&request, CacheRetention::Short);
        assert_eq!(["temperature", "top_p", "seed"].map(|name| body[name].clone()), expected, "{level:?}");
    }
}

#[test]
fn headers_are_our_own_and_can_be_replaced() {
    let mut request = request(json!({"compat": {"sendSessionAffinityHeaders": true}}), json!([]));
    request.credentials.headers =
        vec![("X-Team".into(), Secret::new("blue")), ("user-agent".into(), Secret::new("me"))];
    let built = headers(&request, &Compat::of(&request.model)).unwrap();
    let get = |name: &str| built.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(
        (get("authorization"), get("x-team"), get("user-agent")),
        (Some("Bearer key-1234"), Some("blue"), Some("me"))
    );
    assert_eq!((get("session_id"), get("x-session-affinity")), (Some("session-1"), Some("session-1")));
    assert!(!format!("{built:?}").contains("key-1234"));

    request.credentials = Credentials::default();
    let built = headers(&request, &Compat::of(&request.model)).unwrap();
    assert!(built.get("authorization").is_none());
    assert!(built["user-agent"].to_str().unwrap().starts_with(concat!(
        "agentd/",
        env!("CARGO_PKG_VERSION"),
        " ("
    )));

    request.credentials.api_key = Some(Secret::new("key\n1234"));
    let error = headers(&request, &Compat::of(&request.model)).unwrap_err().to_string();
    assert!(error.contains("line break") && !error.contains("1234"), "{error}");
}
