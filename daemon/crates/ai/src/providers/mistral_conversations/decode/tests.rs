use std::{path::Path, sync::Arc};

use agentd_protocol::{message::AssistantMessage, model::Model};
use serde_json::{Value, json};

use super::*;
use crate::{
    Accumulator,
    http::{BodyDecoder, Redactor},
};

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/v1").unwrap();
    Server::new(&url, "mistral".into(), Redactor::default())
}

fn decode(body: &[u8]) -> Vec<Delta> {
    let mut decoder = BodyDecoder::new(server(), ConversationsDecoder::new(server(), "m"));
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

fn composed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/composed");
    std::fs::read(folder.join(format!("mistral-{name}.sse"))).unwrap()
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

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

#[test]
fn thinking_comes_in_parts() {
    let message = fold(&composed("thinking"));
    assert_eq!(
        content(&message),
        json!([{"type": "thinking", "thinking": "Six times seven is 42."}, {"type": "text", "text": "It is **42** ✓"}])
    );
    assert_eq!((message.stop_reason, message.response_id.as_deref()), (StopReason::Stop, Some("8d1f0c")));
    assert_eq!(message.response_model.as_deref(), Some("magistral-medium-2509"));
    let usage = &message.usage;
    assert_eq!([usage.input, usage.output, usage.cache_read, usage.total_tokens], [14, 22, 16, 52]);
}

#[test]
fn calls_come_whole_and_in_pieces() {
    let whole = fold(&composed("calls"));
    let id = content(&whole)[2]["id"].as_str().unwrap().to_owned();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(
        content(&whole),
        json!([{"type": "text", "text": "Both."}, call("D681PevKs", "read", json!({"path": "a.txt"})),
            call(&id, "ls", json!({"path": "b"}))])
    );
    assert_eq!(whole.stop_reason, StopReason::ToolUse);
    let pieces = fold(&composed("calls-in-pieces"));
    assert_eq!(
        content(&pieces),
        json!([call("aaaaaaaa1", "write", json!({"path": "x"})), call("bbbbbbbb2", "ls", json!({}))])
    );
    let same = fold(&composed("same-index"));
    assert_eq!(
        content(&same),
        json!([call("aaaaaaaa1", "ls", json!({"path": "a"})), call("aaaaaaaa2", "ls", json!({"path": "b"}))])
    );
    assert_eq!(same.stop_reason, StopReason::ToolUse);
}

#[test]
fn an_answer_that_was_not_streamed() {
    let body = json!({"id": "w", "object": "chat.completion", "model": "m", "usage": {"prompt_tokens": 2, "completion_tokens": 3},
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Yes.",
            "tool_calls": [{"id": "aaaaaaaa1", "function": {"name": "ls", "arguments": "{}"}}]}}]});
    let message = fold(body.to_string().as_bytes());
    assert_eq!(
        content(&message),
        json!([{"type": "text", "text": "Yes."}, call("aaaaaaaa1", "ls", json!({}))])
    );
    assert_eq!((message.stop_reason, message.usage.total_tokens), (StopReason::ToolUse, 5));
}

#[test]
fn other_ends() {
    let cut = fold(&composed("length"));
    assert_eq!((cut.stop_reason, cut.text().as_str()), (StopReason::Length, "Once upon a"));
    let check =
        |body: &[u8], kind: FailureKind, text: &str| assert_eq!(failure(body), (kind, text.to_owned()));
    check(&composed("error"), FailureKind::Retryable, "429: Service tier capacity exceeded for this model.");
    check(&composed("server-error"), FailureKind::Retryable, "Provider stopped with: error (server error)");
    check(
        br#"data: {"choices":[{"delta":{},"finish_reason":"odd"}]}"#,
        FailureKind::Fatal,
        "Provider stopped with: odd",
    );
    for body in ["", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "data: [DONE]\n\n"] {
        check(body.as_bytes(), FailureKind::Retryable, "Mistral's stream ended without a finish reason");
    }
    let unauthorized = failure(br#"{"detail":"Unauthorized"}"#);
    assert_eq!(unauthorized.0, FailureKind::Auth, "{unauthorized:?}");
    let overflow = failure(br#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":null}"#);
    assert_eq!(overflow.0, FailureKind::ContextOverflow, "{overflow:?}");
}
