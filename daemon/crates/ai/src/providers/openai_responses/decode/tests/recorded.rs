//! Whole answers from files.

use agentd_protocol::error::ErrorCode;

use super::*;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn capture(name: &str) -> Vec<u8> {
    read(&format!("captures/{name}.body"))
}

/// A capture's text, calls and tokens: input, output, read from the cache.
fn check(name: &str, text: &str, calls: &str, tokens: [u64; 3]) {
    let message = fold(decode([&capture(name)[..]]));
    let found: Vec<String> =
        message.tool_calls().map(|call| format!("{} {}", call.name, json!(call.arguments))).collect();
    assert_eq!((message.text().as_str(), found.join("; ").as_str()), (text, calls), "{name}");
    assert!(
        message.tool_calls().all(|call| call.id.starts_with("call_") && call.id.contains("|fc")),
        "{name}"
    );
    assert_eq!([message.usage.input, message.usage.output, message.usage.cache_read], tokens, "{name}");
    let stop = if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
    assert_eq!(
        (message.stop_reason, message.raw_stop_reason.as_deref()),
        (stop, Some("completed")),
        "{name}"
    );
    assert!(message.response_id.is_some_and(|id| id.starts_with("resp")), "{name}");
    assert!(message.response_model.is_some(), "{name}");
}

#[rustfmt::skip]
#[test]
fn answers_of_a_real_model() {
    check("llamacpp-responses-text", "Red, Orange, Yellow", "", [1, 6, 38]);
    check("llamacpp-responses-tool", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249]);
    check("llamacpp-responses-tool-nostream", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249]);
    check("llamacpp-responses-tool-result", "The README.md file contains information about the Zebra project, including its purpose and how to count zebras.", "", [1, 23, 329]);
    check("litellm-llamacpp-responses-text", "Red, Orange, Yellow", "", [1, 6, 38]);
    check("litellm-llamacpp-responses-tool", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249]);
}

#[rustfmt::skip]
#[test]
fn answers_of_imitations() {
    let spectrum = "Red, orange, yellow. These three are neighbours in the spectrum.";
    let two = r#"read_file {"path":"a.txt"}; read_file {"path":"b.txt"}"#;
    let zebras = "The README says that this project counts zebras.";
    for prefix in ["aimock", "litellm-aimock"] {
        check(&format!("{prefix}-responses-text"), spectrum, "", [0, 0, 0]);
        check(&format!("{prefix}-responses-tool"), "", r#"read_file {"path":"README.md"}"#, [0, 0, 0]);
        check(&format!("{prefix}-responses-tool-parallel"), "Reading both.", two, [0, 0, 0]);
        check(&format!("{prefix}-responses-tool-result"), zebras, "", [0, 0, 0]);
    }
    check("aimock-responses-tool-nostream", "", r#"read_file {"path":"README.md"}"#, [0, 0, 0]);
}

#[test]
fn refusals() {
    for name in ["litellm-mock-responses-text", "litellm-mocktool-responses-tool"] {
        // Its status was 500. The decoder alone reads it as a stream.
        let body = capture(name);
        let Some(Delta::Failed { failure, .. }) = decode([&body[..]]).pop() else { panic!("{name}") };
        assert_eq!(failure.kind, FailureKind::Retryable, "{failure}");
        assert_eq!(failure.message, "500: Error processing stream start");
        let body = ErrorBody::read(&String::from_utf8(body).unwrap());
        assert_eq!(server().refusal(Some(500), &body).kind, FailureKind::Retryable);
    }
    for (name, status, kind) in [
        ("llamacpp-responses-err-no-input", 400, FailureKind::InvalidRequest),
        ("aimock-responses-err-no-input", 500, FailureKind::Retryable),
    ] {
        let body = ErrorBody::read(&String::from_utf8(capture(name)).unwrap());
        let failure = server().refusal(Some(status), &body);
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains("input"), "{failure}");
    }
}

fn composed(name: &str) -> AssistantMessage {
    fold(decode([&read(&format!("composed/responses-{name}.sse"))[..]]))
}

#[test]
fn encrypted_reasoning_with_a_summary() {
    let message = composed("reasoning");
    let item = r#"{"id":"rs_01","type":"reasoning","encrypted_content":"gAAAAABo_Zm9v-YmFy==","summary":[{"type":"summary_text","text":"**Looking** at it"},{"type":"summary_text","text":"**Answering**"}]}"#;
    assert_eq!(
        json!(message.content),
        json!([
            {"type": "thinking", "thinking": "**Looking** at it\n\n**Answering**", "thinkingSignature": item},
            {"type": "text", "text": "It is 4 °C – cold.",
                "textSignature": r#"{"v":1,"id":"msg_01","phase":"final_answer"}"#},
        ])
    );
    let usage = &message.usage;
    assert_eq!([usage.input, usage.output, usage.cache_read, usage.total_tokens], [20, 40, 100, 160]);
    assert_eq!((usage.reasoning, message.stop_reason), (Some(24), StopReason::Stop));
    assert_eq!(message.response_id.as_deref(), Some("resp_0c1"));
    assert_eq!(message.response_model.as_deref(), Some("gpt-5-2025-08-07"));
}

#[test]
fn parallel_calls_whose_pieces_take_turns() {
    let message = composed("parallel-interleaved");
    let item = r#"{"id":"rs_02","type":"reasoning","encrypted_content":"gAAAAABo_Zm9v-YmFy==","summary":[]}"#;
    assert_eq!(
        json!(message.content),
        json!([
            {"type": "thinking", "thinking": "", "thinkingSignature": item},
            {"type": "text", "text": "Reading both.",
                "textSignature": r#"{"v":1,"id":"msg_02","phase":"commentary"}"#},
            {"type": "toolCall", "id": "call_A|fc_0a", "name": "read", "arguments": {"path": "a.txt"}},
            {"type": "toolCall", "id": "call_B|fc_0b", "name": "read", "arguments": {"path": "b.txt"}},
        ])
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
}

#[test]
fn refused_cut_and_failed_answers() {
    let check = |name: &str, text: &str, stop: StopReason, raw: Option<&str>, error: Option<&str>| {
        let message = composed(name);
        assert_eq!((message.text().as_str(), message.stop_reason), (text, stop), "{name}");
        assert_eq!(message.raw_stop_reason.as_deref(), raw, "{name}");
        assert_eq!(message.error_message.as_deref(), error, "{name}");
    };
    use StopReason::{Error, Length};
    let said = "The model refused: I can't help with that.";
    check("refusal", "I can't help with that.", Error, Some("completed"), Some(said));
    assert_eq!(composed("refusal").code, Some(ErrorCode::ModelRefused));
    check("incomplete-length", "Once upon a", Length, Some("max_output_tokens"), None);
    let filtered = "Response incomplete: content_filter";
    check("incomplete-filter", "Take", Error, Some("content_filter"), Some(filtered));
    let failed = "server_error: The server had an error while processing your request. Sorry about that!";
    check("failed", "", Error, Some("failed"), Some(failed));
    let limit = "Error Code rate_limit_exceeded: Rate limit reached for gpt-5 in organization org-x on tokens per min.";
    check("error", "Half", Error, None, Some(limit));
}

#[test]
fn whole_items_without_pieces_from_a_tier_with_its_price() {
    let message = composed("no-deltas");
    assert_eq!(message.text(), "Here.");
    let calls: Vec<String> = message.tool_calls().map(|call| json!(call.arguments).to_string()).collect();
    assert_eq!(calls, [r#"{"path":"c.txt"}"#]);
    let cost = &message.usage.cost;
    let expected = 1.0 / 1e6 * 9.0 * 2.0;
    assert_eq!((cost.input, cost.output, cost.total), (expected, expected, expected + expected));
    assert_eq!(cost.total_from_provider, Some(false));
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
