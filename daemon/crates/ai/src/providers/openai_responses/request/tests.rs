use std::sync::Arc;

use agentd_protocol::{Json, message::Message, model::ThinkingLevel};

use super::*;
use crate::Secret;

mod input;
mod laws;

fn model(overrides: Value) -> Model {
    let mut model = json!({
        "id": "m", "name": "m", "api": "openai-responses", "provider": "local",
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
            api_key: Some(Secret::new("sk-1234")),
            headers: Vec::new(),
            ..Credentials::default()
        },
        ..Request::new(Arc::new(model(model_overrides)), messages)
    }
}

fn encoded(request: &Request) -> Value {
    serde_json::from_slice(&body(request, &Compat::of(&request.model, Dialect::OpenAi)).unwrap()).unwrap()
}

/// Everything but the input of a request with one prompt.
fn rest(request: &Request) -> Value {
    let mut body = encoded(request);
    body.as_object_mut().unwrap().shift_remove("input");
    body
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn signed(words: &str, signature: &str) -> Value {
    json!({"type": "text", "text": words, "textSignature": signature})
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature})
}

fn image() -> Value {
    json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}})
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "openai-responses", "provider": "local", "model": "m",
        "stopReason": "toolUse"})
}

fn answer_of_another(content: Value) -> Value {
    let mut answer = answer(content);
    answer["model"] = json!("other");
    answer
}

fn result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content})
}

#[test]
fn a_whole_request() {
    let tool = |name: &str, sampling: Value| json!({"name": name, "description": "runs", "parameters": {"type": "object"}, "constrainedSampling": sampling});
    let system = json!({"role": "system", "content": "", "sections": {"a": "One.", "b": "Two."}, "toolsAdded": [
        tool("bash", json!({"type": "json_schema", "strict": "prefer"})),
        {"name": "plain", "description": "", "parameters": null},
    ]});
    let mut request = request(
        json!({"maxTokens": 1000, "reasoning": true, "samplingParams": {"temperature": 0.5, "store": true}}),
        json!([
            system,
            user("hi"),
            answer(json!([text("Look"), call("c1|fc_1")])),
            result("c1|fc_1", json!([text("a"), text("b")]))
        ]),
    );
    request.thinking_level = ThinkingLevel::High;
    let mut expected = json!({
        "model": "m",
        "input": [
            {"role": "developer", "content": "One.\n\nTwo."},
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "assistant", "status": "completed", "id": "msg_pi_0",
                "content": [{"type": "output_text", "text": "Look", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "arguments": "{\"command\":\"ls\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a\nb"},
        ],
        "stream": true,
        "store": true,
        "prompt_cache_key": "session-1",
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 1000,
        "tools": [
            {"type": "function", "name": "bash", "description": "runs", "parameters": {"type": "object"}},
            {"type": "function", "name": "plain", "description": "", "parameters": {"type": "object", "properties": {}}},
        ],
        "temperature": 0.5,
    });
    assert_eq!(encoded(&request), expected);
    // Strict schemas, where the server has them.
    let mut strict = (*request.model).clone();
    strict.compat = json!({"supportsStrictMode": true, "supportsDeveloperRole": false}).as_object().cloned();
    request.model = Arc::new(strict);
    expected["tools"][0]["strict"] = json!(true);
    expected["tools"][0]["parameters"] =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    expected["tools"][1]["strict"] = json!(false);
    expected["input"][0]["role"] = json!("system");
    assert_eq!(encoded(&request), expected);
}

#[test]
fn the_system_prompt_of_a_model_that_does_not_reason_is_a_system_message() {
    let body = encoded(&request(json!({}), json!([{"role": "system", "content": "S"}, user("q")])));
    assert_eq!(body["input"][0], json!({"role": "system", "content": "S"}));
    assert_eq!(encoded(&request(json!({}), json!([user("q")])))["input"].as_array().unwrap().len(), 1);
}

#[test]
fn caching_is_asked_for_as_it_is_wanted() {
    let check = |compat: Value, retention: CacheRetention, expected: Value| {
        let mut request = request(json!({"compat": compat}), json!([user("q")]));
        request.cache_retention = retention;
        request.session_id = "é".repeat(70);
        let mut full = json!({"model": "m", "stream": true, "store": false});
        full.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        assert_eq!(rest(&request), full, "{compat} {retention:?}");
    };
    use CacheRetention::{Long, None, Short};
    let key = "é".repeat(64);
    check(json!({}), None, json!({}));
    let explicit = json!({"prompt_cache_options": {"mode": "explicit"}});
    check(json!({"supportsExplicitPromptCacheMode": true}), None, explicit);
    check(json!({}), Short, json!({"prompt_cache_key": key}));
    check(json!({"promptCacheKeyMode": "disabled"}), Short, json!({}));
    check(json!({}), Long, json!({"prompt_cache_key": key, "prompt_cache_retention": "24h"}));
    check(json!({"supportsLongCacheRetention": false}), Long, json!({"prompt_cache_key": key}));
    check(
        json!({"supportsExplicitPromptCacheMode": true}),
        Long,
        json!({"prompt_cache_key": key, "prompt_cache_options": {"ttl": "30m"}}),
    );
}

#[test]
fn an_answer_has_its_limit() {
    let limit = |overrides: Value| rest(&request(overrides, json!([user("q")])))["max_output_tokens"].clone();
    assert_eq!(limit(json!({"maxTokens": 1000})), json!(1000));
    assert_eq!(limit(json!({"maxTokens": 3})), json!(16));
    assert_eq!(limit(json!({})), Value::Null);
    assert_eq!(limit(json!({"maxTokens": 9, "compat": {"supportsMaxOutputTokens": false}})), Value::Null);
}

#[test]
fn an_account_that_is_signed_in_is_asked_for_less() {
    let overrides = |provider: &str| json!({"maxTokens": 9, "baseUrl": if provider == "proxied" { "https://proxy/v1" } else { "https://api.openai.com/v1" }, "provider": provider, "samplingParams": {"temperature": 1, "top_p": 0.5}});
    let with_key = |provider: &str, key: &str| {
        let mut request = request(overrides(provider), json!([user("q")]));
        if provider == "proxied" {
            request.model = Arc::new(Model { provider: "openai".into(), ..(*request.model).clone() });
        }
        request.cache_retention = CacheRetention::Long;
        request.credentials.api_key = Some(Secret::new(key));
        rest(&request)
    };
    let less =
        json!({"model": "m", "stream": true, "store": false, "prompt_cache_key": "session-1", "top_p": 0.5});
    assert_eq!(with_key("openai", "eyJhbGciOi"), less);
    for (provider, key) in [("openai", "sk-1"), ("local", "eyJhbGciOi"), ("proxied", "eyJhbGciOi")] {
        let full = with_key(provider, key);
        let all = ["max_output_tokens", "temperature", "prompt_cache_retention"];
        assert!(all.iter().all(|name| full.get(*name).is_some()), "{full}");
    }
}

#[test]
fn what_the_model_is_configured_with_wins() {
    let params = json!({"model": "n", "input": "i", "tools": [], "stream": false});
    let tool = json!({"role": "system", "content": "", "toolsAdded": [{"name": "bash", "description": "", "parameters": null}]});
    let text = body_text(&request(json!({ "samplingParams": params }), json!([tool, user("q")])));
    let body: Value = serde_json::from_str(&text).unwrap();
    for (name, value) in params.as_object().unwrap() {
        assert_eq!(&body[name], value);
        assert_eq!(text.matches(&format!("\"{name}\":")).count(), 1, "{text}");
    }
    let by_level = json!({"high": {"temperature": 1, "top_p": 0.9}});
    let overrides =
        json!({"samplingParams": {"temperature": 0.5}, "samplingParamsByThinkingLevel": by_level});
    let mut request = request(overrides, json!([user("q")]));
    for (level, expected) in
        [(ThinkingLevel::High, [json!(1), json!(0.9)]), (ThinkingLevel::Low, [json!(0.5), Value::Null])]
    {
        request.thinking_level = level;
        let body = encoded(&request);
        assert_eq!(["temperature", "top_p"].map(|name| body[name].clone()), expected, "{level:?}");
    }
}

fn body_text(request: &Request) -> String {
    String::from_utf8(body(request, &Compat::of(&request.model, Dialect::OpenAi)).unwrap().to_vec()).unwrap()
}
