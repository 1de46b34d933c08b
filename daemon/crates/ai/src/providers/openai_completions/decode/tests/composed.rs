//! What no recording at hand shows: streams composed after the documentation of vendors and gateways.

use agentd_protocol::error::ErrorCode;

use super::*;

fn composed(name: &str) -> AssistantMessage {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/composed");
    let body = std::fs::read(format!("{folder}/chat-{name}.sse")).unwrap();
    let openrouter = Model { base_url: "https://openrouter.ai/api/v1".into(), ..model(Value::Null) };
    let message = fold(decode_with(&openrouter, [&body[..]]));
    assert_eq!(message.response_id.as_deref(), Some("chatcmpl-01"), "{name}");
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
fn reasoning_in_a_field_of_its_own() {
    let thinking = json!({"type": "thinking", "thinking": "27 is 3 times 9, so 27 · 453 = 12 231.",
        "thinkingSignature": "reasoning_content"});
    let message = check("reasoning", json!([thinking, said("27 · 453 = 12 231 ✓")]), StopReason::Stop);
    let usage = &message.usage;
    assert_eq!([usage.input, usage.cache_read, usage.output, usage.total_tokens], [4, 16, 61, 81]);
    assert_eq!(usage.reasoning, Some(40));
}

#[test]
fn records_of_a_gateway() {
    let records = json!([
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "The file is short.",
            "signature": "EqQBCgIYAhIM1gbcDa9GJw=="},
        {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "index": 1, "data": "EmwKAhgBEgy3va3p"},
    ]);
    let message = composed("reasoning-details");
    let content = json!(message.content);
    assert_eq!(content[0]["thinking"], "The file is short.");
    let signature = content[0]["thinkingSignature"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(signature).unwrap(), records);
    assert_eq!(content[1], said("Reading it."));
    assert_eq!(content[2], call("toolu_01", "read", json!({"path": "a.txt"})));
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.response_model.as_deref(), Some("anthropic/claude-sonnet-4.5"));
    let usage = &message.usage;
    assert_eq!([usage.input, usage.cache_read, usage.cache_write, usage.output], [100, 600, 300, 50]);
    assert_eq!((usage.cost.total, usage.cost.total_from_provider), (0.0123, Some(true)));
}

#[test]
fn parallel_calls_whose_pieces_take_turns() {
    let content = json!([
        said("Reading both. Wait."),
        call("call_A", "read", json!({"path": "a.txt"})),
        call("call_B", "read", json!({"path": "b.txt"})),
        call("call_C", "list", json!({})),
    ]);
    check("parallel-interleaved", content, StopReason::ToolUse);
}

#[test]
fn refused_cut_and_failed_answers() {
    let message = check("refusal", json!([said("I can't help with that.")]), StopReason::Error);
    assert_eq!(message.error_message.as_deref(), Some("The model refused: I can't help with that."));
    assert_eq!(
        (message.code, message.raw_stop_reason.as_deref()),
        (Some(ErrorCode::ModelRefused), Some("stop"))
    );
    let cut = call("call_B", "write", json!({"path": "a", "content": "lon"}));
    check("length", json!([call("call_A", "list", json!({"path": "."})), cut]), StopReason::Length);
    let message = check("filter", json!([said("Take")]), StopReason::Error);
    assert_eq!(message.error_message.as_deref(), Some("Provider finish_reason: content_filter"));
    let message = check("overloaded", json!([said("Let me")]), StopReason::Error);
    assert_eq!(message.error_message.as_deref(), Some("503: Overloaded"));
    assert_eq!(classify_message("p", "503: Overloaded"), FailureKind::Retryable);
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
