use agentd_protocol::{
    message::{AssistantMessage, StopReason},
    model::ModelCost,
};
use serde_json::json;

use super::*;
use crate::{
    Accumulator, BlockSeal,
    http::{BodyDecoder, ErrorBody, Redactor},
};

mod blocks;
mod laws;
mod recorded;

fn model() -> Arc<Model> {
    Arc::new(Model {
        id: "gpt-5".into(),
        api: "openai-responses".into(),
        provider: "p".into(),
        cost: ModelCost { input: 1.0, output: 1.0, ..ModelCost::default() },
        ..Model::placeholder()
    })
}

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/v1/responses").unwrap();
    Server::new(&url, "p".into(), Redactor::default())
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Delta> {
    let mut decoder = BodyDecoder::new(server(), ResponsesDecoder::new(server(), &model()));
    let mut deltas = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk, &mut deltas);
    }
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    assert!(decoder.is_finished());
    deltas
}

fn fold(deltas: Vec<Delta>) -> AssistantMessage {
    let mut accumulator = Accumulator::new(model(), 0);
    for delta in deltas {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

fn message(body: &str) -> AssistantMessage {
    fold(decode([body.as_bytes()]))
}

fn failure(body: &str) -> (FailureKind, String) {
    match decode([body.as_bytes()]).pop() {
        Some(Delta::Failed { failure, .. }) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    }
}

/// A stream of these events, nameless.
fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn completed(response: Value) -> Value {
    json!({"type": "response.completed", "response": response})
}

#[test]
fn who_answers_is_said_once() {
    let created = json!({"type": "response.created", "response": {"id": "r1", "model": "gpt-5"}});
    let deltas = decode([stream(&[created, completed(json!({"id": "r2", "model": "gpt-5-x"}))]).as_bytes()]);
    let done = Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: Some("completed".into()) };
    assert_eq!(deltas, [Delta::ResponseId("r1".into()), done.clone()]);
    let created = json!({"type": "response.created", "response": {"id": "r1"}});
    let deltas = decode([stream(&[created, completed(json!({"model": "other"}))]).as_bytes()]);
    assert_eq!(deltas, [Delta::ResponseId("r1".into()), Delta::ResponseModel("other".into()), done]);
}

#[test]
fn events_that_mean_nothing_here_are_passed_over() {
    let body = stream(&[
        json!({"type": "keepalive", "sequence_number": 1}),
        json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws"}),
        json!({"type": "response.output_item.added", "item": {"type": "web_search_call", "id": "ws"}}),
        json!({"type": "response.output_item.done", "item": {"type": "web_search_call", "id": "ws"}}),
        json!({"type": "response.output_item.added"}),
        json!({"type": "response.output_text.annotation.added", "annotation": {}}),
        json!({}),
        json!({"type": "response.completed"}),
    ]);
    assert_eq!(decode([body.as_bytes()]).len(), 1);
}

#[test]
fn a_stream_without_its_end_failed() {
    let text = stream(&[json!({"type": "response.output_text.delta", "delta": "Hi"})]);
    let expected = "OpenAI Responses stream ended before a terminal response event";
    for body in
        [String::new(), text.clone(), format!("{text}data: [DONE]\n\n"), format!("{text}data: {{\"ty")]
    {
        assert_eq!(failure(&body), (FailureKind::Retryable, expected.to_owned()), "{body}");
    }
    let message = message(&text);
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hi", StopReason::Error));
}

#[test]
fn errors_are_told_in_the_providers_words_and_sorted() {
    use FailureKind::{ContextOverflow, Fatal, Retryable};
    let check = |event: Value, kind: FailureKind, message: &str| {
        assert_eq!(failure(&stream(std::slice::from_ref(&event))), (kind, message.to_owned()), "{event}");
    };
    let error = |code: Value, message: &str| json!({"type": "error", "code": code, "message": message});
    check(error(json!("server_error"), "Oops"), Retryable, "Error Code server_error: Oops");
    check(error(json!("rate_limit_exceeded"), "Slow"), Retryable, "Error Code rate_limit_exceeded: Slow");
    check(error(json!("insufficient_quota"), "Pay"), Fatal, "Error Code insufficient_quota: Pay");
    check(
        error(json!("context_length_exceeded"), "Long"),
        ContextOverflow,
        "Error Code context_length_exceeded: Long",
    );
    check(error(json!(503), "busy"), Retryable, "Error Code 503: busy");
    check(error(Value::Null, "odd"), Fatal, "odd");
    check(
        json!({"type": "error", "error": {"type": "server_error", "code": null, "message": "Oops"}}),
        Retryable,
        "Error Code server_error: Oops",
    );
    // Its kind is in no text but its own.
    check(json!({"error": {"message": "no", "code": "429"}}), Retryable, "429: no");
    check(json!({"error": "plain"}), Fatal, "plain");
    let failed =
        |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    check(failed(json!({"code": "server_error", "message": "m"})), Retryable, "server_error: m");
    check(failed(json!({"message": "m"})), Fatal, "m");
    check(failed(Value::Null), Fatal, "Response failed: the provider gave no reason");
    let incomplete = |details: Value| {
        let response = json!({"status": "incomplete", "incomplete_details": details});
        json!({"type": "response.incomplete", "response": response})
    };
    check(
        incomplete(json!({"reason": "content_filter"})),
        FailureKind::ModelRefusal,
        "Response incomplete: content_filter",
    );
    check(incomplete(Value::Null), Fatal, "Response incomplete: unknown");
    assert_eq!(failure("event: error\ndata: {\"message\":\"busy\"}\n\n"), (Retryable, "busy".into()));
    assert_eq!(failure("event: error\ndata: went away\n\n").1, "went away");
}

#[test]
fn a_failure_means_the_same_by_its_message_alone() {
    let said =
        ["server_error", "rate_limit_exceeded", "insufficient_quota", "context_length_exceeded", "503", "x"];
    for code in said {
        let error = json!({"code": code, "message": "m"});
        let mut event = error.clone();
        event["type"] = json!("error");
        let failed = json!({"type": "response.failed", "response": {"error": error}});
        for event in [event, failed] {
            let (kind, message) = failure(&stream(&[event]));
            assert_eq!(crate::failure::classify_message("p", &message), kind, "{message}");
        }
    }
}

#[test]
fn a_refusal_may_come_whole() {
    let body = json!({"id": "r", "object": "response", "status": "completed", "output": [
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Well: "}, {"type": "refusal", "refusal": "no."}]},
    ]});
    let refused = message(&body.to_string());
    assert_eq!((refused.text().as_str(), refused.stop_reason), ("Well: no.", StopReason::Error));
    assert_eq!(refused.error_message.as_deref(), Some("The model refused: no."));
    // A tool's arguments may speak of refusals.
    let body = json!({"id": "r", "object": "response", "status": "completed", "output": [
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{\"refusal\":1}"},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "{\"refusal\": \"no\"}"}]},
    ]});
    assert_eq!(message(&body.to_string()).stop_reason, StopReason::ToolUse);
}

#[test]
fn an_answer_may_come_whole() {
    let body = json!({"id": "r", "object": "response", "status": "completed", "error": null, "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi "}, {"type": "output_text", "text": "no"}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{\"a\":1}"},
    ], "usage": {"input_tokens": 3, "output_tokens": 4}});
    let message = message(&body.to_string());
    assert_eq!(
        json!(message.content),
        json!([
            {"type": "thinking", "thinking": "hm",
                "thinkingSignature": r#"{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}]}"#},
            {"type": "text", "text": "Hi no", "textSignature": r#"{"v":1,"id":"m"}"#},
            {"type": "toolCall", "id": "c", "name": "read", "arguments": {"a": 1}},
        ])
    );
    assert_eq!((message.stop_reason, message.usage.total_tokens), (StopReason::ToolUse, 7));
    let cut = &body.to_string()[..40];
    assert_eq!(failure(cut).0, FailureKind::Retryable);
    assert!(failure(r#"{"status":"ok"}"#).1.contains("JSON that is no answer of a model"));
    let (kind, text) = failure(r#"{"error":{"code":400,"message":"maximum context length is 5 tokens"}}"#);
    assert_eq!(
        (kind, text.as_str()),
        (FailureKind::ContextOverflow, "400: maximum context length is 5 tokens")
    );
    let body = r#"{"object":"response","status":"failed","output":[],"error":{"code":"server_error","message":"m"}}"#;
    assert_eq!(failure(body), (FailureKind::Retryable, "server_error: m".into()));
}

#[test]
fn a_flood_of_pieces_costs_what_it_brings() {
    // A count of the work, not of the time: every delta is passed on as it came, and the arguments are not read again.
    let item = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "write"});
    let mut body = stream(&[json!({"type": "response.output_item.added", "output_index": 0, "item": item})]);
    let piece = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": "x"});
    let piece = format!("data: {piece}\n\n");
    body.push_str(&piece.repeat(40_000));
    let deltas = decode([body.as_bytes()]);
    assert_eq!(deltas.len(), 40_003);
    assert!(
        matches!(&deltas[40_000], Delta::Extend { index: 0, delta } if delta == "x" && delta.capacity() < 64)
    );
}
