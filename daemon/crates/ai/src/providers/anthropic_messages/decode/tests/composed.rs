//! Streams composed after the vendor's documentation, for which there is no recording.

use super::*;

fn composed(name: &str) -> AssistantMessage {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/composed");
    let body = std::fs::read_to_string(format!("{folder}/messages-{name}.sse")).unwrap();
    let message = fold(decode(&body));
    assert_eq!(message.response_id.as_deref(), Some("msg_01"), "{name}");
    message
}

fn check(name: &str, content: Value, stop_reason: StopReason) -> AssistantMessage {
    let message = composed(name);
    assert_eq!(json!(message.content), content, "{name}");
    assert_eq!(message.stop_reason, stop_reason, "{name}");
    message
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

#[test]
fn thinking_and_its_signature() {
    let thinking = json!({"type": "thinking", "thinking": "27 is 3 times 9, so 27 · 453 = 12 231.",
        "thinkingSignature": "EqQBCgIYAhIM1gbcDa9GJwZc9W2xGh0a+/=="});
    let content = json!([thinking, said("27 · 453 = 12 231 ✓")]);
    let message = check("thinking", content, StopReason::Stop);
    assert_eq!((message.usage.output, message.usage.reasoning), (61, Some(40)));
    assert_eq!(message.response_model.as_deref(), Some("claude-sonnet-4-5-20250929"));

    let omitted = json!({"type": "thinking", "thinking": "", "thinkingSignature": "EosnCkYICxIMMb3LzNrMu"});
    check("thinking-omitted", json!([omitted, said("Done.")]), StopReason::Stop);

    let redacted = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "redacted": true,
        "thinkingSignature": "EmwKAhgBEgy3va3pzix/LafPsn4="});
    check("redacted", json!([redacted, said("Based on that.")]), StopReason::Stop);
}

#[test]
fn calls_between_other_things() {
    let content = json!([
        said("Reading both."),
        call("toolu_01", "read", json!({"path": "a.txt"})),
        call("toolu_02", "read", json!({"path": "b.txt"})),
        call("toolu_03", "list", json!({})),
        call("toolu_04", "read", json!({"path": "c.txt"})),
    ]);
    check("parallel", content, StopReason::ToolUse);
}

#[test]
fn tokens_of_the_cache() {
    let message = check("cache", json!([said("Hi")]), StopReason::Stop);
    let usage = &message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (4, 7, 18_001, 2000));
    assert_eq!((usage.cache_write1h, usage.reasoning, usage.total_tokens), (Some(1500), None, 20_012));
    assert_eq!((message.raw_stop_reason.as_deref(), message.response_model), (Some("stop_sequence"), None));
}

#[test]
fn answers_that_fail_on_the_way() {
    let message = check("refusal", json!([said("I")]), StopReason::Error);
    assert_eq!(message.error_message.as_deref(), Some("This request was declined for safety reasons."));
    assert_eq!(message.raw_stop_reason.as_deref(), Some("refusal"));

    let message = check("overloaded", json!([said("Let me")]), StopReason::Error);
    let data = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_01"}"#;
    assert_eq!(message.error_message.as_deref(), Some(data));
}

#[test]
fn arguments_cut_by_the_output_limit_are_read_as_far_as_they_go() {
    let content = json!([
        call("toolu_01", "list", json!({"path": "."})),
        call("toolu_02", "write", json!({"path": "a", "content": "lon"})),
    ]);
    check("max-tokens", content, StopReason::Length);
}

#[test]
fn arguments_are_mended_or_refused() {
    let message = composed("broken-arguments");
    let calls: Vec<_> = message.tool_calls().collect();
    assert_eq!(json!(calls[0].arguments), json!({"path": "C:\\dir", "content": "one\ntwo"}));
    assert_eq!((&calls[0].arguments_error, calls[1].arguments.len()), (&None, 0));
    let error = calls[1].arguments_error.as_deref().unwrap();
    assert!(error.contains("not valid JSON") && error.contains("{\"command\": ls}"), "{error}");
}
