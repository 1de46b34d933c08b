use std::sync::Arc;

use agentd_protocol::{Json, message::Message};

use super::*;

fn request(overrides: &Value, messages: &Value) -> Request {
    let mut model = json!({
        "id": "m", "name": "m", "api": "mistral-conversations", "provider": "mistral",
        "baseUrl": "https://api.mistral.ai", "input": ["text", "image"], "contextWindow": 0, "maxTokens": 1000,
    });
    model.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
    let model = serde_json::from_value(model).unwrap();
    let messages: Vec<Json<Message>> = serde_json::from_value(messages.clone()).unwrap();
    Request::new(Arc::new(model), messages)
}

fn encoded(request: &Request) -> Value {
    serde_json::from_slice(&body(request).unwrap()).unwrap()
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn answer(model: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "mistral-conversations", "provider": "mistral",
        "model": model, "stopReason": "toolUse", "timestamp": 0})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {"path": "a"}})
}

fn result(id: &str, content: Value, is_error: bool) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": content, "isError": is_error,
        "timestamp": 0})
}

fn image() -> Value {
    json!({"type": "image", "data": "aW1n", "mimeType": "image/png"})
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_whole_request() {
    let messages = json!([
        {"role": "system", "content": "Be brief.", "timestamp": 0,
         "toolsAdded": [{"name": "ls", "description": "Lists", "parameters": {"type": "object", "properties": {}}}]},
        user(json!("hi")),
        answer("m", json!([{"type": "thinking", "thinking": "hm"}, said("So."), said("  "), call("abcABC123")])),
        result("abcABC123", json!([said("x"), image()]), false),
        user(json!([said("and?"), image()])),
    ]);
    let mut asked = request(&json!({}), &messages);
    asked.session_id = "s-1".into();
    let data = json!({"type": "image_url", "image_url": "data:image/png;base64,aW1n"});
    assert_eq!(
        encoded(&asked),
        json!({
            "model": "m", "stream": true, "max_tokens": 1000, "prompt_cache_key": "s-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "prefix": false,
                 "content": [{"type": "thinking", "thinking": [said("hm")]}, said("So.")],
                 "tool_calls": [{"id": "abcABC123", "type": "function",
                    "function": {"name": "ls", "arguments": "{\"path\":\"a\"}"}}]},
                {"role": "tool", "tool_call_id": "abcABC123", "name": "ls", "content": [said("x"), data]},
                {"role": "user", "content": [said("and?"), data]},
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "description": "Lists",
                "parameters": {"type": "object", "properties": {}}, "strict": false}}],
        })
    );
    asked.cache_retention = CacheRetention::None;
    assert!(encoded(&asked).get("prompt_cache_key").is_none());
}

#[test]
fn thinking_is_asked_for_by_effort_or_by_mode() {
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};
    let check = |overrides: Value, level: ThinkingLevel, expected: Value| {
        let mut asked = request(&overrides, &json!([user(json!("hi"))]));
        asked.thinking_level = level;
        let body = encoded(&asked);
        let found = json!([body["reasoning_effort"], body["prompt_mode"]]);
        assert_eq!(found, expected, "{overrides} {level:?}");
    };
    let mapped = json!({"reasoning": true, "thinkingLevelMap":
        {"off": "none", "minimal": null, "low": "low", "medium": null, "high": "high", "max": "max"}});
    for (level, effort) in [(Off, "none"), (Low, "low"), (Medium, "high"), (High, "high"), (Max, "max")] {
        check(mapped.clone(), level, json!([effort, null]));
    }
    let always = json!({"reasoning": true, "thinkingLevelMap": {"off": null, "low": "low"}});
    check(always.clone(), Off, json!([null, null]));
    check(always, Minimal, json!(["high", null]));
    check(json!({"reasoning": true}), Medium, json!([null, "reasoning"]));
    check(json!({"reasoning": true}), Off, json!([null, null]));
    check(json!({"reasoning": false}), High, json!([null, null]));
}

#[test]
fn calls_of_other_models_get_short_ids() {
    let messages = json!([
        answer(
            "other",
            json!([{"type": "thinking", "thinking": "hm"}, call("call_1|fc_2"), call("call_1|fc_3")])
        ),
        result("call_1|fc_3", json!([said("b")]), true),
        result("call_1|fc_2", json!([]), false),
        answer("m", json!([call("call_1|fc_2"), call("call_1|fc_2")])),
        result("call_1|fc_2", json!([image()]), true),
        result("call_1|fc_2", json!([image()]), false),
    ]);
    let body = encoded(&request(&json!({}), &messages));
    let messages = body["messages"].as_array().unwrap();
    let id = |message: usize, call: usize| messages[message]["tool_calls"][call]["id"].as_str().unwrap();
    let ids = [id(0, 0), id(0, 1), id(3, 0), id(3, 1)];
    let distinct: std::collections::HashSet<&str> = ids.into_iter().collect();
    assert_eq!(distinct.len(), 4, "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 9), "{ids:?}");
    assert!(messages[0].get("content").is_none(), "thinking of another model is not sent: {}", messages[0]);
    let text = |message: usize| {
        (messages[message]["tool_call_id"].as_str().unwrap(), &messages[message]["content"][0]["text"])
    };
    assert_eq!(text(1), (ids[0], &json!("(no tool output)")));
    assert_eq!(text(2), (ids[1], &json!("[tool error] b")));
    assert_eq!(text(4), (ids[2], &json!("[tool error] (see attached image)")));
    assert_eq!(text(5), (ids[3], &json!("(see attached image)")));
}

#[test]
fn images_are_named_to_models_that_see_none() {
    let messages = json!([
        user(json!([image()])),
        answer("m", json!([call("abcABC123")])),
        result("abcABC123", json!([said("x"), image()]), false),
    ]);
    let body = encoded(&request(&json!({"input": ["text"]}), &messages));
    assert_eq!(body["messages"][0]["content"], "(image omitted: model does not support images)");
    assert_eq!(
        body["messages"][2]["content"],
        json!([said("x\n(tool image omitted: model does not support images)")])
    );
}

#[test]
fn later_system_messages_stay_where_that_is_known_to_work() {
    let messages = json!([
        {"role": "system", "content": "One.", "timestamp": 0}, user(json!("hi")),
        {"role": "system", "content": "Two.", "timestamp": 0}, user(json!("ho")),
    ]);
    let roles = |overrides: Value| {
        let body = encoded(&request(&overrides, &messages));
        let messages = body["messages"].as_array().unwrap().iter();
        messages
            .map(|message| format!("{} {}", message["role"], message["content"]))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let folded = r#""system" "One.\n\nTwo.", "user" "hi", "user" "ho""#;
    assert_eq!(roles(json!({})), folded);
    let placed = r#""system" "One.", "user" "hi", "system" "Two.", "user" "ho""#;
    assert_eq!(roles(json!({"compat": {"supportsMidConvoSystemMessages": true}})), placed);
}

#[test]
fn constrained_arguments() {
    let messages = json!([{"role": "system", "content": "", "timestamp": 0, "toolsAdded": [
        {"name": "t", "description": "", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
         "constrainedSampling": {"type": "json_schema", "strict": "prefer"}}, {"name": "u", "description": ""}]}, user(json!("hi"))]);
    let body = encoded(&request(&json!({"samplingParams": {"temperature": 0.2}}), &messages));
    assert_eq!((&body["tools"][0]["function"]["strict"], &body["temperature"]), (&json!(true), &json!(0.2)));
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["a"]));
    assert_eq!(body["tools"][1]["function"]["parameters"], json!({"type": "object", "properties": {}}));
}
