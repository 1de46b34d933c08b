use std::sync::Arc;

use agentd_protocol::{
    Json,
    model::{Model, ThinkingLevel},
};
use serde_json::json;

use super::*;
use crate::{
    CacheRetention, Credentials, Secret, estimate::input_tokens,
    providers::anthropic_messages::headers::headers,
};

mod caching;
mod laws;

fn model(overrides: &Value) -> Model {
    let mut model = json!({
        "id": "m", "name": "m", "api": "anthropic-messages", "provider": "p",
        "baseUrl": "https://api.anthropic.com", "reasoning": false, "input": ["text", "image"],
        "contextWindow": 0, "maxTokens": 1000,
    });
    model.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
    serde_json::from_value(model).unwrap()
}

/// A request without cache markers.
fn request(model_overrides: &Value, messages: &Value) -> Request {
    let messages: Vec<Json<Message>> = serde_json::from_value(messages.clone()).unwrap();
    Request {
        session_id: "session-1".into(),
        credentials: Credentials {
            api_key: Some(Secret::new("key-1234")),
            headers: Vec::new(),
            ..Credentials::default()
        },
        cache_retention: CacheRetention::None,
        ..Request::new(Arc::new(model(model_overrides)), messages)
    }
}

fn parts(request: &Request) -> (Compat, Thinking, Encoded) {
    let compat = Compat::of(&request.model);
    let readable = handoff::readable(&request.messages);
    let thinking = Thinking::of(request, &compat, input_tokens(&readable));
    let encoded = body(request, &readable, &compat, &thinking).unwrap();
    (compat, thinking, encoded)
}

fn encoded(request: &Request) -> Value {
    serde_json::from_slice(&parts(request).2.json).unwrap()
}

fn header(request: &Request, name: &str) -> Option<String> {
    let (compat, thinking, encoded) = parts(request);
    let headers = headers(request, &compat, &thinking, encoded.has_tools).unwrap();
    headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

/// Only the messages.
fn check_messages(model_overrides: &Value, messages: &Value, expected: Value) {
    let body = encoded(&request(model_overrides, messages));
    assert_eq!(body, json!({"model": "m", "max_tokens": 1000, "stream": true, "messages": expected}));
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn said(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}})
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "p", "model": "m",
        "stopReason": "stop"})
}

fn result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content})
}

fn failed_result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content, "isError": true})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(data: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": "image/png"})
}

fn thinking(text: &str, signature: Option<&str>) -> Value {
    json!({"type": "thinking", "thinking": text, "thinkingSignature": signature})
}

fn api_call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": "ls"}})
}

fn wire_result(id: &str, content: Value, is_error: bool) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})
}

fn wire_image(data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

#[test]
fn a_whole_request() {
    let tool = json!({"name": "bash", "description": "runs", "parameters": {"type": "object",
        "properties": {"command": {"type": "string"}}, "required": ["command"], "additionalProperties": false},
        "constrainedSampling": {"type": "json_schema", "strict": "prefer"}});
    let messages = json!([
        {"role": "system", "content": "", "sections": {"a": "One.", "b": "Two."}, "toolsAdded": [tool]},
        user(json!([text("hi"), text(" "), image("AAAA")])),
        answer(json!([thinking("hm", Some("sig")), text("Look"), text("ing."), call("c1"), call("c2")])),
        result("c1", json!([text("a"), text("b")])),
        result("c2", json!([])),
        user(json!("and?")),
    ]);
    let overrides =
        json!({"maxTokens": 20_000, "reasoning": true, "samplingParams": {"temperature": 1, "top_k": 5}});
    let mut request = request(&overrides, &messages);
    request.thinking_level = ThinkingLevel::Low;
    assert_eq!(
        encoded(&request),
        json!({
            "model": "m",
            "max_tokens": 20_000,
            "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
            "system": [text("One.\n\nTwo.")],
            "tools": [{"name": "bash", "description": "runs", "eager_input_streaming": true, "input_schema":
                {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}],
            "messages": [
                user(json!([text("hi"), wire_image("AAAA")])),
                said(json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}, text("Look"), text("ing."),
                    api_call("c1"), api_call("c2")])),
                user(json!([wire_result("c1", json!("a\nb"), false), wire_result("c2", json!("(no tool output)"), false)])),
                user(json!([text("and?")])),
            ],
            "top_k": 5,
        })
    );
}

#[test]
fn nothing_empty_is_sent() {
    let messages = json!([
        {"role": "system", "content": " \n"},
        user(json!(" ")),
        user(json!("q")),
        answer(json!([text("\n")])),
        answer(json!([thinking(" ", None)])),
        answer(json!([call("c1")])),
        result("c1", json!([text(" ")])),
    ]);
    let expected = json!([
        user(json!([text("q")])),
        said(json!([api_call("c1")])),
        user(json!([wire_result("c1", json!("(no tool output)"), false)])),
    ]);
    check_messages(&json!({}), &messages, expected);
}

#[test]
fn images_go_where_they_may() {
    let messages = json!([
        user(json!([image("1")])),
        answer(json!([call("c1"), call("c2"), call("c3"), call("c4")])),
        result("c1", json!([image("2")])),
        result("c2", json!([text("out"), image("3")])),
        failed_result("c3", json!([text("broken"), image("4"), image("5"), text("end")])),
        failed_result("c4", json!([image("6")])),
    ]);
    let see = text("(see attached image)");
    let follows = "(image attached after the tool results)";
    let expected = json!([
        user(json!([see, wire_image("1")])),
        said(json!([api_call("c1"), api_call("c2"), api_call("c3"), api_call("c4")])),
        user(json!([
            wire_result("c1", json!([see, wire_image("2")]), false),
            wire_result("c2", json!([text("out"), wire_image("3")]), false),
            wire_result("c3", json!(format!("broken\n{follows}\nend")), true),
            wire_result("c4", json!(follows), true),
            text("Images from the error result of tool call c3 (bash):"),
            wire_image("4"),
            wire_image("5"),
            text("Images from the error result of tool call c4 (bash):"),
            wire_image("6"),
        ])),
    ]);
    check_messages(&json!({}), &messages, expected);
    let omitted = json!("(tool image omitted: model does not support images)");
    let body = encoded(&request(&json!({"input": ["text"]}), &messages));
    assert_eq!(body["messages"][2]["content"][0]["content"], omitted);
    assert_eq!(body["messages"][2]["content"].as_array().unwrap().len(), 4);
}

#[test]
fn thinking_goes_back_as_it_came() {
    let redacted = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "data", "redacted": true});
    let lost = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "redacted": true});
    let content = json!([
        thinking("", Some("sig")),
        redacted,
        lost,
        thinking("plain", None),
        thinking("blank", Some("")),
        text("a"),
        thinking("last", Some("sig")),
        redacted,
    ]);
    let messages =
        json!([answer(content), answer(json!([thinking("alone", Some("sig"))])), user(json!("q"))]);
    let signed =
        |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let data = json!({"type": "redacted_thinking", "data": "data"});
    let asked = user(json!([text("q")]));
    check_messages(
        &json!({}),
        &messages,
        json!([said(json!([signed("", "sig"), data, text("plain"), text("blank"), text("a")])), asked]),
    );
    check_messages(
        &json!({"compat": {"allowEmptySignature": true}}),
        &messages,
        json!([
            said(json!([signed("", "sig"), data, signed("plain", ""), signed("blank", ""), text("a")])),
            asked
        ]),
    );
    let mut other = messages;
    other[0]["model"] = json!("other");
    check_messages(&json!({}), &other, json!([said(json!([text("a")])), asked]));
}

#[test]
fn ids_are_legal_and_unique() {
    let mut other = answer(json!([call("call_1|fc.1")]));
    other["provider"] = json!("other");
    let messages = json!([
        other,
        result("call_1|fc.1", json!([text("1")])),
        answer(json!([call("c"), call("d")])),
        result("c", json!([text("2")])),
        answer(json!([call("d"), call("c")])),
        result("c", json!([text("3")])),
        failed_result("d", json!([image("4")])),
    ]);
    let expected = json!([
        said(json!([api_call("call_1_fc_1")])),
        user(json!([wire_result("call_1_fc_1", json!("1"), false)])),
        said(json!([api_call("c"), api_call("d")])),
        user(json!([
            wire_result("c", json!("2"), false),
            wire_result("d", json!("No result provided"), true)
        ])),
        said(json!([api_call("d_2"), api_call("c_2")])),
        user(json!([
            wire_result("d_2", json!("(image attached after the tool results)"), true),
            wire_result("c_2", json!("3"), false),
            text("Images from the error result of tool call d_2 (bash):"),
            wire_image("4"),
        ])),
    ]);
    check_messages(&json!({}), &messages, expected);
}

#[test]
fn configured_parameters_win() {
    let params = json!({"temperature": 0.5, "model": "other", "stream": false, "max_tokens": 5, "system": "x",
        "metadata": {"user_id": "u"}});
    let by_level = json!({"off": {"temperature": 0.7}, "high": {"temperature": 0.9, "top_p": 0.99}});
    let overrides =
        json!({"samplingParams": params, "samplingParamsByThinkingLevel": by_level, "reasoning": true});
    let messages = json!([{"role": "system", "content": "S"}]);
    let base = json!({"model": "other", "messages": [], "stream": false, "max_tokens": 5, "system": "x",
        "metadata": {"user_id": "u"}});
    let check = |overrides: &Value, level: ThinkingLevel, more: Value| {
        let mut expected = base.clone();
        expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = Request { thinking_level: level, ..request(overrides, &messages) };
        assert_eq!(encoded(&request), expected, "{level:?}");
    };
    let disabled = json!({"type": "disabled"});
    check(&overrides, ThinkingLevel::Off, json!({"temperature": 0.7, "thinking": disabled}));
    let mut adaptive = overrides;
    adaptive["compat"] = json!({"forceAdaptiveThinking": true, "supportsTemperature": false});
    let thinking = json!({"type": "adaptive", "display": "summarized"});
    check(
        &adaptive,
        ThinkingLevel::High,
        json!({"top_p": 0.99, "thinking": thinking, "output_config": {"effort": "high"}}),
    );
    check(&adaptive, ThinkingLevel::Off, json!({"thinking": disabled}));
    adaptive["compat"] = json!({"forceAdaptiveThinking": true});
    check(&adaptive, ThinkingLevel::Low, json!({"thinking": thinking, "output_config": {"effort": "low"}}));
}

#[test]
fn keys_go_where_they_belong() {
    let mut request = request(&json!({}), &json!([]));
    let found = |request: &Request| (header(request, "x-api-key"), header(request, "authorization"));
    assert_eq!(found(&request), (Some("key-1234".into()), None));
    request.credentials.api_key = Some(Secret::new("sk-ant-oat01-x"));
    assert_eq!(found(&request), (None, Some("Bearer sk-ant-oat01-x".into())));
    request.credentials.api_key = Some(Secret::new("token"));
    request.model = Arc::new(model(&json!({"provider": "github-copilot"})));
    assert_eq!(found(&request), (None, Some("Bearer token".into())));
    request.credentials = Credentials::default();
    assert_eq!(found(&request), (None, None));
    request.credentials.headers = vec![("Authorization".into(), Secret::new("Bearer mine"))];
    assert_eq!(found(&request), (None, Some("Bearer mine".into())));
}

#[test]
fn headers_are_our_own_and_can_be_replaced() {
    let tools = json!([{"role": "system", "content": "", "toolsAdded": [{"name": "a"}]}]);
    let fine = "fine-grained-tool-streaming-2025-05-14";
    let interleaved = "interleaved-thinking-2025-05-14";
    let check = |overrides: &Value, messages: &Value, level: ThinkingLevel, expected: Option<&str>| {
        let request = Request { thinking_level: level, ..request(overrides, messages) };
        assert_eq!(header(&request, "anthropic-version").as_deref(), Some("2023-06-01"));
        assert_eq!(header(&request, "anthropic-beta").as_deref(), expected, "{overrides} {level:?}");
    };
    let lazy =
        json!({"compat": {"supportsEagerToolInputStreaming": false}, "reasoning": true, "maxTokens": 9000});
    check(&json!({}), &tools, ThinkingLevel::Off, None);
    check(&lazy, &json!([]), ThinkingLevel::Off, None);
    check(&lazy, &tools, ThinkingLevel::Off, Some(fine));
    check(&lazy, &json!([]), ThinkingLevel::High, Some(interleaved));
    check(&lazy, &tools, ThinkingLevel::High, Some(&format!("{fine},{interleaved}")));
    let adaptive = json!({"compat": {"forceAdaptiveThinking": true}, "reasoning": true});
    check(&adaptive, &tools, ThinkingLevel::High, None);

    let others =
        json!({"compat": {"allowedFallbackModels": [{"provider": "p", "model": "other"}, {"odd": 1}]}});
    check(&others, &tools, ThinkingLevel::Off, Some("server-side-fallback-2026-07-01"));
    let mut token = request(&json!({}), &tools);
    token.credentials.api_key = Some(Secret::new("sk-ant-oat01-x"));
    assert_eq!(header(&token, "anthropic-beta").as_deref(), Some("oauth-2025-04-20"));
    assert_eq!(header(&token, "authorization").as_deref(), Some("Bearer sk-ant-oat01-x"));
    assert_eq!((header(&token, "x-api-key"), header(&token, "x-app")), (None, None));

    let mut request = Request {
        thinking_level: ThinkingLevel::High,
        cache_retention: crate::CacheRetention::Short,
        ..request(&lazy, &tools)
    };
    assert!(header(&request, "user-agent").unwrap().starts_with("agentd/"));
    assert_eq!(header(&request, "x-session-id"), None);
    request.credentials.headers = vec![("Anthropic-Beta".into(), Secret::new("mine"))];
    assert_eq!(header(&request, "anthropic-beta").as_deref(), Some("mine"));
    request.credentials.headers = vec![("anthropic-beta".into(), Secret::new(""))];
    assert_eq!(header(&request, "anthropic-beta"), None);
    request.model = Arc::new(model(&json!({"compat": {"sendSessionAffinityHeaders": true}})));
    assert_eq!(header(&request, "x-session-affinity").as_deref(), Some("session-1"));
    assert_eq!(header(&request, "x-session-id"), None);
    request.model = Arc::new(model(&json!({"provider": "openrouter"})));
    assert_eq!(header(&request, "x-session-id").as_deref(), Some("session-1"));
    assert_eq!(header(&request, "x-session-affinity"), None);
    request.session_id = String::new();
    assert_eq!(header(&request, "x-session-id"), None);
}
