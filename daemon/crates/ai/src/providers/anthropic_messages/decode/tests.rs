use std::sync::Arc;

use agentd_protocol::{
    message::{AssistantMessage, StopReason},
    model::Model,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    Accumulator, BlockKind, BlockSeal,
    failure::classify_message,
    http::{BodyDecoder, Redactor, laws::check_order},
};

mod captures;
mod composed;

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/v1/messages?beta=true").unwrap();
    Server::new(&url, "p".into(), Redactor::default())
}

fn decoder() -> BodyDecoder<MessagesDecoder> {
    BodyDecoder::new(
        server(),
        MessagesDecoder::new(server(), &Model { id: "m".into(), ..Model::placeholder() }),
    )
}

fn decode(body: &str) -> Vec<Delta> {
    let mut decoder = decoder();
    let mut deltas = Vec::new();
    decoder.feed(body.as_bytes(), &mut deltas);
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    assert!(decoder.is_finished());
    deltas
}

fn fold(deltas: Vec<Delta>) -> AssistantMessage {
    let model = Model { id: "m".into(), provider: "p".into(), ..Model::placeholder() };
    let mut accumulator = Accumulator::new(Arc::new(model), 0);
    for delta in deltas {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

/// A stream of these events.
fn stream(events: &[Value]) -> String {
    let text = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(text).collect()
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn text(index: u64, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
}

fn args(index: u64, json: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end() -> Value {
    json!({"type": "message_stop"})
}

fn failure(body: &str) -> (FailureKind, String) {
    match decode(body).pop() {
        Some(Delta::Failed { failure, .. }) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_comes_with_the_beginning_of_a_block_counts() {
    let message = fold(decode(&stream(&[
        start(0, json!({"type": "thinking", "thinking": "hm", "signature": "si"})),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "g"}}),
        stop(0),
        start(1, json!({"type": "text", "text": "He"})),
        text(1, "llo"),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "a", "name": "x", "input": {"n": 1}})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "b", "name": "x", "input": {"n": 1}})),
        args(3, "{\"n\":"),
        args(3, "2}"),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "c", "name": "x", "input": null})),
        stop(4),
        end(),
    ])));
    assert_eq!(
        json!(message.content),
        json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "text", "text": "Hello"},
            {"type": "toolCall", "id": "a", "name": "x", "arguments": {"n": 1}},
            {"type": "toolCall", "id": "b", "name": "x", "arguments": {"n": 2}},
            {"type": "toolCall", "id": "c", "name": "x", "arguments": {}},
        ])
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
}

#[test]
fn blocks_are_sealed_where_they_end() {
    let deltas = decode(&stream(&[
        start(0, json!({"type": "text", "text": ""})),
        text(0, "a"),
        stop(0),
        start(1, json!({"type": "tool_use", "id": "i", "name": "x", "input": {}})),
        args(1, "{}"),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "j", "name": "x", "input": {}})),
        stop(2),
        end(),
    ]));
    let open = |index: usize, kind: BlockKind| Delta::Open { index, kind };
    let call = |id: &str| BlockKind::ToolCall { id: id.into(), name: "x".into() };
    let seal = |index: usize| Delta::Seal { index, seal: BlockSeal::default() };
    assert_eq!(
        deltas,
        [
            open(0, BlockKind::Text),
            Delta::Extend { index: 0, delta: "a".into() },
            seal(0),
            open(1, call("i")),
            Delta::Extend { index: 1, delta: "{}".into() },
            seal(1),
            open(2, call("j")),
            seal(2),
            Delta::Done { stop_reason: StopReason::ToolUse, raw_stop_reason: None },
        ]
    );
}

#[test]
fn servers_may_be_careless_about_blocks() {
    // One number for everything, and no ends.
    let message = fold(decode(&stream(&[
        start(0, json!({"type": "text", "text": "a"})),
        start(0, json!({"type": "tool_use", "name": "x", "input": {"n": 1}})),
        start(0, json!({"type": "tool_use", "id": "", "name": "y"})),
        args(0, "{\"n\":2}"),
        end(),
    ])));
    let calls: Vec<_> = message.tool_calls().collect();
    assert_eq!((message.text().as_str(), calls.len()), ("a", 2));
    assert_eq!((json!(calls[0].arguments), json!(calls[1].arguments)), (json!({"n": 1}), json!({"n": 2})));
    assert!(calls[0].id.starts_with("call_") && calls[0].id != calls[1].id);
    // No beginnings, strange kinds, and pieces that fit nothing.
    let message = fold(decode(&stream(&[
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "t"}}),
        text(1, "a"),
        args(1, "{"),
        stop(1),
        text(1, "late"),
        args(2, "{}"),
        stop(3),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}}),
        json!({"type": "content_block_delta", "index": 1}),
        json!({"type": "new_thing"}),
        end(),
    ])));
    assert_eq!(
        json!(message.content),
        json!([{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}])
    );
    // The kind of an event in its name alone.
    let named = "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\nevent: message_stop\ndata: {}\n\n";
    assert_eq!(fold(decode(named)).text(), "a");
}

#[test]
fn a_stream_without_its_end_failed() {
    let begun = stream(&[start(0, json!({"type": "text", "text": "Hi"}))]);
    let said = stream(&[json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})]);
    let expected = (FailureKind::Retryable, "Anthropic stream ended before message_stop".to_owned());
    for body in [
        String::new(),
        begun.clone(),
        format!("{begun}data: [DONE]\n\n"),
        format!("{begun}{said}"),
        format!("{begun}data: {{\"type\":\"mess"),
    ] {
        assert_eq!(failure(&body), expected, "{body}");
        assert_eq!(classify_message("p", &expected.1), expected.0);
    }
    let message = fold(decode(&begun));
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hi", StopReason::Error));
}

#[test]
fn failures_are_shown_as_they_came() {
    use FailureKind::{Auth, ContextOverflow, Fatal, InvalidRequest, Retryable};
    let check = |error: Value, kind: FailureKind| {
        let data = json!({"type": "error", "error": error}).to_string();
        for body in [format!("event: error\ndata: {data}\n\n"), format!("data: {data}\n\n"), data.clone()] {
            assert_eq!(failure(&body), (kind, data.clone()), "{body}");
        }
        // What is retried is decided by the message alone once it is stored.
        assert_eq!(classify_message("p", &data) == Retryable, kind == Retryable, "{data}");
    };
    let error = |kind: &str, message: &str| json!({"type": kind, "message": message});
    check(error("overloaded_error", "Overloaded"), Retryable);
    check(error("api_error", "Unexpected"), Retryable);
    check(error("api_error", "Internal server error"), Retryable);
    check(error("rate_limit_error", "This request would exceed your rate limit"), Retryable);
    check(error("timeout_error", "x"), Retryable);
    check(error("authentication_error", "invalid x-api-key"), Auth);
    check(error("permission_error", "x"), Auth);
    check(error("invalid_request_error", "max_tokens: must be positive"), InvalidRequest);
    check(error("not_found_error", "model: x"), InvalidRequest);
    check(
        error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ContextOverflow,
    );
    check(error("request_too_large", "x"), ContextOverflow);
    check(error("invalid_request_error", "Your credit balance is too low: see billing"), Fatal);
    check(error("odd", "x"), Fatal);
    assert_eq!(failure("event: error\ndata: went away\n\n").1, "went away");
    assert_eq!(
        failure("event: error\ndata: {\"message\":\"busy\"}\n\n"),
        (Retryable, "{\"message\":\"busy\"}".into())
    );
}

#[test]
fn failures_in_the_form_of_other_apis() {
    use FailureKind::{ContextOverflow, Retryable};
    let (kind, message) =
        failure("data: {\"error\":{\"message\":\"no\",\"code\":\"429\"}}\n\ndata: [DONE]\n\n");
    assert_eq!((kind, message.as_str()), (Retryable, "429: {\"message\":\"no\",\"code\":\"429\"}"));
    let overflow = r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#;
    assert_eq!(failure(overflow).0, ContextOverflow);
    assert_eq!(failure("data: {\"error\":\"plain\"}\n\n").1, "plain");
}

#[test]
fn answers_that_are_no_answer() {
    let (_, message) = failure("{\"status\":\"ok\"}");
    assert!(message.contains("JSON that is no answer of a model: {\"status\":\"ok\"}"), "{message}");
    assert_eq!(failure("{\"content\":[{\"type\":\"text\",\"te").0, FailureKind::Retryable);
    let (kind, message) = failure("event: message_start\ndata: {oops}\n\nevent: message_stop\ndata: {}\n\n");
    assert_eq!(kind, FailureKind::Fatal);
    assert!(message.starts_with("host:1 sent an event that cannot be read"), "{message}");
}

#[test]
fn an_abort_keeps_what_came() {
    let mut decoder = decoder();
    let mut deltas = Vec::new();
    decoder.feed(
        stream(&[start(0, json!({"type": "text", "text": "x "})), text(0, "y")]).as_bytes(),
        &mut deltas,
    );
    decoder.fail(Failure::aborted(), &mut deltas);
    check_order("abort", &deltas);
    let message = fold(deltas);
    assert_eq!((message.text().as_str(), message.stop_reason), ("x y", StopReason::Aborted));
}

#[test]
fn a_signature_that_breaks_off_is_dropped() {
    let signature = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQ"}});
    let message = fold(decode(&stream(&[start(0, json!({"type": "thinking", "thinking": "t"})), signature])));
    assert_eq!(json!(message.content), json!([{"type": "thinking", "thinking": "t"}]));
}
