use std::{path::Path, sync::Arc};

use agentd_protocol::{
    message::{AssistantMessage, ContentBlock, StopReason},
    model::Model,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    Accumulator,
    http::{BodyDecoder, Redactor},
};

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/v1beta").unwrap();
    Server::new(&url, "p".into(), Redactor::default())
}

fn decode(body: &[u8]) -> Vec<Delta> {
    let mut decoder = BodyDecoder::new(server(), GoogleDecoder::new(server(), "m", 1_700_000_000_000));
    let mut deltas = Vec::new();
    decoder.feed(body, &mut deltas);
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    deltas
}

fn fold(body: &[u8]) -> AssistantMessage {
    let model = Model { id: "m".into(), ..Model::placeholder() };
    let mut accumulator = Accumulator::new(Arc::new(model), 0);
    for delta in decode(body) {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data").join(file)).unwrap()
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn failure(body: &[u8]) -> (FailureKind, String) {
    match decode(body).pop() {
        Some(Delta::Failed { failure, .. }) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn recorded_answers() {
    let check = |name: &str, text: &str, calls: &str, raw_stop: &str| {
        let message = fold(&read(&format!("captures/aimock-google-{name}.body")));
        let found: Vec<String> =
            message.tool_calls().map(|call| format!("{} {}", call.name, json!(call.arguments))).collect();
        assert_eq!((message.text().as_str(), found.join("; ").as_str()), (text, calls), "{name}");
        assert_eq!(message.raw_stop_reason.as_deref(), Some(raw_stop), "{name}");
        let stop = match raw_stop {
            "MAX_TOKENS" => StopReason::Length,
            "FUNCTION_CALL" => StopReason::ToolUse,
            _ => StopReason::Stop,
        };
        assert_eq!(message.stop_reason, stop, "{name}");
    };
    let colours = "Red, orange, yellow. These three are neighbours in the spectrum.";
    let one = r#"read_file {"path":"README.md"}"#;
    let both = r#"read_file {"path":"a.txt"}; read_file {"path":"b.txt"}"#;
    for vertex in ["", "vertex-"] {
        check(&format!("{vertex}text"), colours, "", "STOP");
        check(&format!("{vertex}tool"), "", one, "FUNCTION_CALL");
        check(&format!("{vertex}tool-parallel"), "Reading both.", both, "FUNCTION_CALL");
    }
    check("text-nostream", colours, "", "STOP");
    check("tool-nostream", "", one, "FUNCTION_CALL");
    check("length", "One, two", "", "MAX_TOKENS");
    check("tool-result", "The README says that this project counts zebras.", "", "STOP");
    check("thinking", "Forty-two.", "", "STOP");
    let thinking = fold(&read("captures/aimock-google-thinking.body"));
    assert_eq!(
        content(&thinking)[0],
        json!({"type": "thinking", "thinking": "Six times seven is forty-two."})
    );
}

#[test]
fn thinking_calls_and_signatures() {
    let message = fold(&read("composed/google-thinking-signed.sse"));
    assert_eq!(
        content(&message),
        json!([
            {"type": "thinking", "thinking": "**Looking**\n\nThe file comes first. Then the count."},
            {"type": "text", "text": "I read the file first — ✓."},
            {"type": "toolCall", "id": "fc-7f3a", "name": "read", "arguments": {"path": "README.md", "limit": 20},
             "thoughtSignature": "Y29tcG9zZWQgc2lnbmF0dXJl"},
            {"type": "toolCall", "id": "fc-91bb", "name": "ls", "arguments": {}},
            {"type": "text", "text": "", "textSignature": "bGFzdCBzaWduYXR1cmU="},
        ])
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.response_id.as_deref(), Some("hQ1mabc"));
    assert_eq!(message.response_model.as_deref(), Some("gemini-3-pro-001"));
    let usage = &message.usage;
    assert_eq!(
        [usage.input, usage.output, usage.cache_read, usage.total_tokens, usage.reasoning.unwrap()],
        [300, 109, 512, 921, 68]
    );
    let message = fold(&read("composed/google-text-signed.sse"));
    assert_eq!(
        content(&message),
        json!([{"type": "text", "text": "Fourteen.", "textSignature": "c2lnbmF0dXJlIG9mIGEgdGV4dA=="}])
    );
}

#[test]
fn calls_get_ids_of_their_own() {
    let message = fold(&read("composed/google-calls-without-ids.sse"));
    let ids: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["ls_1700000000000_1", "same", "ls_1700000000000_3", "ls_1700000000000_4"]);
    let last = message.tool_calls().last().unwrap();
    assert!(last.arguments.is_empty() && last.arguments_error.is_none());
}

#[test]
fn arguments_come_in_one_piece_and_as_they_can_be_read() {
    let call = |args: &str| {
        let body = format!(
            r#"data: {{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"t","args":{args}}}}}]}},"finishReason":"STOP"}}]}}"#
        );
        let message = fold(format!("{body}\n\n").as_bytes());
        let ContentBlock::ToolCall(call) = message.content[0].clone() else { panic!("{message:?}") };
        (Value::Object(call.arguments), call.arguments_error.is_some())
    };
    assert_eq!(call(r#"{"a": 1.0, "b": "\ud83d x"}"#), (json!({"a": 1, "b": "\u{fffd} x"}), false));
    assert_eq!(call("null"), (json!({}), false));
    assert_eq!(call(r#""{\"a\":1}""#), (json!({"a": 1}), false));
    assert_eq!(call(r#""no""#), (json!({}), true));
}

#[test]
fn failures_say_what_happened() {
    let check = |file: &str, kind: FailureKind, text: &str| {
        assert_eq!(failure(&read(file)), (kind, text.to_owned()), "{file}");
    };
    check(
        "composed/google-safety.sse",
        FailureKind::ModelRefusal,
        "Provider stopped with: SAFETY (the provider's safety filter)",
    );
    check(
        "composed/google-prompt-blocked.sse",
        FailureKind::ModelRefusal,
        "The provider blocked the prompt: PROHIBITED_CONTENT (prohibited by the provider's content policy)",
    );
    check(
        "composed/google-malformed-call.sse",
        FailureKind::Retryable,
        "Provider stopped with: MALFORMED_FUNCTION_CALL (the model wrote a tool call that cannot be read; try again): \
         Malformed function call: print(default_api.read(path='README.md'",
    );
    check(
        "composed/google-error.sse",
        FailureKind::Retryable,
        "503: The model is overloaded. Please try again later.",
    );
    let partial = fold(&read("composed/google-error.sse"));
    assert_eq!((partial.text().as_str(), partial.stop_reason), ("So far ", StopReason::Error));
    let overflow = failure(&read("captures/aimock-google-err-overflow.body"));
    assert_eq!(overflow.0, FailureKind::ContextOverflow, "{overflow:?}");
    let limit = failure(&read("captures/aimock-google-err-rate-limit.body"));
    assert_eq!(limit.0, FailureKind::Retryable, "{limit:?}");
    let bad_key = br#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
    assert_eq!(failure(bad_key).0, FailureKind::Auth);
}

#[test]
fn answers_without_an_end_or_without_content() {
    for body in
        ["data: {\"candidates\":[]}\n\n", "data: {\"usageMetadata\":{\"promptTokenCount\":1}}\n\n", ""]
    {
        let expected = (FailureKind::Retryable, "Google's stream ended without a finish reason".to_owned());
        assert_eq!(failure(body.as_bytes()), expected);
    }
    let (kind, text) = failure(br#"{"hello": 1}"#);
    assert!(kind == FailureKind::Fatal && text.contains("no answer of a model"), "{text}");
    let (kind, text) = failure(b"[]");
    assert!(kind == FailureKind::Fatal && text.contains("no answer of a model"), "{text}");
    let empty = fold(b"data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n");
    assert_eq!((empty.stop_reason, empty.content.len()), (StopReason::Stop, 0));
    let cut = fold(&read("composed/google-max-tokens.sse"));
    assert_eq!(
        (cut.stop_reason, content(&cut)[0]["thinking"].clone()),
        (StopReason::Length, json!("Counting: one, two"))
    );
    assert_eq!(fold(&read("composed/google-list.sse")).text(), "Red, blue.");
}
