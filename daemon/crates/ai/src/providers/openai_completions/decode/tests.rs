use std::sync::Arc;

use agentd_protocol::{message::AssistantMessage, model::Model};
use serde_json::{Value, json};

use super::*;
use crate::{
    Accumulator, BlockKind,
    http::{BodyDecoder, ErrorBody, Redactor},
};

fn model(compat: Value) -> Model {
    Model {
        id: "m".into(),
        api: "openai-completions".into(),
        provider: "p".into(),
        compat: compat.as_object().cloned(),
        ..Model::placeholder()
    }
}

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/v1/chat/completions").unwrap();
    Server::new(&url, "p".into(), Redactor::default())
}

fn decoder(model: &Model) -> BodyDecoder<CompletionsDecoder> {
    BodyDecoder::new(server(), CompletionsDecoder::new(server(), &model.id, &Compat::of(model)))
}

fn decode_with<'a>(model: &Model, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Delta> {
    let mut decoder = decoder(model);
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

fn decode(body: &str) -> Vec<Delta> {
    decode_with(&model(Value::Null), [body.as_bytes()])
}

fn fold(deltas: Vec<Delta>) -> AssistantMessage {
    let mut accumulator = Accumulator::new(Arc::new(model(Value::Null)), 0);
    for delta in deltas {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

/// A stream of these chunks, with its end.
fn stream(chunks: &[Value]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn failure(body: &str) -> (FailureKind, String) {
    match decode(body).pop() {
        Some(Delta::Failed { failure, .. }) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    }
}

mod composed;

mod captures {
    use super::*;

    fn read(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/captures");
        std::fs::read(format!("{folder}/{name}.body")).unwrap()
    }

    /// The deltas fold to these facts (found by another program).
    fn check(name: &str, text: &str, calls: &str, usage: Option<[u64; 3]>, raw_stop: &str) {
        let body = read(name);
        let message = fold(decode_with(&model(Value::Null), [&body[..]]));
        let found: Vec<String> =
            message.tool_calls().map(|call| format!("{} {}", call.name, json!(call.arguments))).collect();
        assert_eq!((message.text().as_str(), found.join("; ").as_str()), (text, calls), "{name}");
        let tokens = [message.usage.input, message.usage.output, message.usage.cache_read];
        assert_eq!(message.usage.reasoning.map(|_| tokens), usage, "{name}");
        assert_eq!(message.raw_stop_reason.as_deref(), Some(raw_stop), "{name}");
        let stop = match raw_stop {
            "length" => StopReason::Length,
            _ if !calls.is_empty() => StopReason::ToolUse,
            _ => StopReason::Stop,
        };
        assert_eq!(message.stop_reason, stop, "{name}");
        assert!(message.response_id.is_some_and(|id| id.starts_with("chatcmpl-")), "{name}");
        assert!(message.response_model.is_some(), "{name}");
    }

    #[rustfmt::skip]
    #[test]
    fn of_a_real_model() {
        check("litellm-llamacpp-chat-text", "Red, Orange, Yellow", "", Some([1, 6, 38]), "stop");
        check("litellm-llamacpp-chat-tool", "", r#"read_file {"path":"README.md"}"#, Some([11, 22, 239]), "tool_calls");
        check("llamacpp-chat-jsonschema", "{\n  \"name\": \"Alice\",\n  \"age\": 30\n}", "", Some([33, 22, 0]), "stop");
        check("llamacpp-chat-length", "One, two, three", "", Some([13, 5, 24]), "length");
        check("llamacpp-chat-text-nostream", "Red, Orange, Yellow", "", Some([15, 6, 24]), "stop");
        check("llamacpp-chat-text-nousage", "Red, Orange, Yellow", "", None, "stop");
        check("llamacpp-chat-text", "Red, Orange, Yellow", "", Some([1, 6, 38]), "stop");
        check("llamacpp-chat-tool-named", "Hello! How can I assist you today?", "", Some([241, 10, 5]), "stop");
        check("llamacpp-chat-tool-nostream", "", r#"read_file {"path":"README.md"}"#, Some([11, 22, 239]), "tool_calls");
        check("llamacpp-chat-tool-parallel", "", r#"read_file {"path":"a.txt"}"#, Some([27, 22, 239]), "tool_calls");
        check("llamacpp-chat-tool-required", "", r#"read_file {"path":"README.md"}"#, Some([11, 22, 239]), "tool_calls");
        check("llamacpp-chat-tool-result", "The README.md file contains information about the Zebra project, including its purpose and how to count zebras.", "", Some([59, 23, 271]), "stop");
        check("llamacpp-chat-tool", "", r#"read_file {"path":"README.md"}"#, Some([250, 22, 0]), "tool_calls");
        check("llamacpp-err-bad-model", "Hello! How can I", "", None, "length");
        check("llamacpp-err-bad-role", "I apologize, but I'm unable to assist with that request.", "", None, "stop");
    }

    #[rustfmt::skip]
    #[test]
    fn of_imitations() {
        check("aimock-chat-jsonschema", "{\"name\":\"Ann\",\"age\":41}", "", Some([4, 6, 0]), "stop");
        check("aimock-chat-length", "One, two", "", Some([9, 2, 0]), "length");
        check("aimock-chat-text-nostream", "Red, orange, yellow. These three are neighbours in the spectrum.", "", Some([13, 16, 0]), "stop");
        check("aimock-chat-text-nousage", "Red, orange, yellow. These three are neighbours in the spectrum.", "", None, "stop");
        check("aimock-chat-text", "Red, orange, yellow. These three are neighbours in the spectrum.", "", Some([13, 16, 0]), "stop");
        check("aimock-chat-tool-nostream", "", r#"read_file {"path":"README.md"}"#, Some([22, 8, 0]), "tool_calls");
        check("aimock-chat-tool-parallel", "Reading both.", r#"read_file {"path":"a.txt"}; read_file {"path":"b.txt"}"#, Some([37, 16, 0]), "tool_calls");
        check("aimock-chat-tool-required", "", r#"read_file {"path":"README.md"}"#, Some([22, 8, 0]), "tool_calls");
        check("aimock-chat-tool-result", "The README says that this project counts zebras.", "", Some([31, 12, 0]), "stop");
        check("aimock-chat-tool", "", r#"read_file {"path":"README.md"}"#, Some([22, 8, 0]), "tool_calls");
        check("litellm-aimock-chat-text", "Red, orange, yellow. These three are neighbours in the spectrum.", "", Some([13, 16, 0]), "stop");
        check("litellm-aimock-chat-tool-parallel", "Reading both.", r#"read_file {"path":"a.txt"}; read_file {"path":"b.txt"}"#, Some([37, 16, 0]), "tool_calls");
        check("litellm-aimock-chat-tool-result", "The README says that this project counts zebras.", "", Some([31, 12, 0]), "stop");
        check("litellm-aimock-chat-tool", "", r#"read_file {"path":"README.md"}"#, Some([22, 8, 0]), "tool_calls");
        check("litellm-mock-chat-text-nostream", "Red, orange, yellow.", "", Some([10, 20, 0]), "stop");
        check("litellm-mock-chat-text", "Red, orange, yellow.", "", Some([17, 6, 0]), "stop");
        check("litellm-mocktool-chat-tool-nostream", "Let me look.", r#"read_file {"path":"README.md"}"#, Some([10, 20, 0]), "stop");
        check("litellm-mocktool-chat-tool", "Let me look.", "", Some([32, 4, 0]), "stop");
    }

    #[test]
    fn of_refusals() {
        let check = |name: &str, status: u16, kind: FailureKind, holds: &str| {
            let body = ErrorBody::read(&String::from_utf8(read(name)).unwrap());
            let failure = server().refusal(Some(status), &body);
            assert_eq!(failure.kind, kind, "{name}: {failure}");
            assert!(failure.message.starts_with(&format!("{status}: {{")), "{name}: {failure}");
            assert!(failure.message.contains(holds), "{name}: {failure}");
        };
        use FailureKind::{Auth, ContextOverflow, InvalidRequest, Retryable};
        check("llamacpp-err-overflow", 400, ContextOverflow, "\"n_ctx\":2048");
        check("llamacpp-err-overflow-stream", 400, ContextOverflow, "3030 tokens");
        check("aimock-err-overflow", 400, ContextOverflow, "context_length_exceeded");
        check("litellm-aimock-err-overflow-stream", 400, ContextOverflow, "ContextWindowExceededError");
        check("litellm-llamacpp-err-overflow-stream", 400, ContextOverflow, "available context size");
        check("llamacpp-err-bad-key", 401, Auth, "Invalid API Key");
        check("llamacpp-err-bad-json", 400, InvalidRequest, "parse error");
        check("llamacpp-err-bad-tools", 500, Retryable, "Failed to parse tools");
        check("aimock-err-rate-limit", 429, Retryable, "Rate limit reached");
        check("litellm-aimock-err-rate-limit", 429, Retryable, "RateLimitError");
        check("litellm-badmodel-chat-text", 400, InvalidRequest, "Invalid model name");
        check("aimock-err-bad-model", 404, InvalidRequest, "No fixture matched");
    }
}

#[test]
fn ends_come_at_the_end_in_the_order_of_the_content() {
    let call = |piece: Value| delta(json!({ "tool_calls": [piece] }));
    let deltas = decode(&stream(&[
        json!({"id": "r1", "model": "m", "choices": [{"delta": {"role": "assistant", "content": ""}}]}),
        delta(json!({"content": "Running."})),
        call(json!({"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"a\":"}})),
        delta(json!({"content": " Now."})),
        call(json!({"index": 0, "function": {"arguments": "1}"}})),
        finish("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}),
    ]));
    let extend = |index: usize, text: &str| Delta::Extend { index, delta: text.into() };
    let seal = |index: usize| Delta::Seal { index, seal: crate::BlockSeal::default() };
    let Delta::Usage(usage) = deltas[8].clone() else { panic!("{deltas:?}") };
    assert_eq!((usage.input, usage.reasoning), (100, Some(0)));
    assert_eq!(
        deltas,
        [
            Delta::ResponseId("r1".into()),
            Delta::Open { index: 0, kind: BlockKind::Text },
            extend(0, "Running."),
            Delta::Open { index: 1, kind: BlockKind::ToolCall { id: "call_1".into(), name: "bash".into() } },
            extend(1, ""),
            extend(1, "{\"a\":"),
            extend(0, " Now."),
            extend(1, "1}"),
            Delta::Usage(usage),
            seal(0),
            seal(1),
            Delta::Done { stop_reason: StopReason::ToolUse, raw_stop_reason: Some("tool_calls".into()) },
        ]
    );
}

#[test]
fn calls_are_matched_by_index_then_by_id() {
    let calls = |pieces: &[Value]| {
        let chunks: Vec<Value> = pieces.iter().map(|piece| delta(json!({ "tool_calls": [piece] }))).collect();
        let mut chunks = chunks;
        chunks.push(finish("tool_calls"));
        let message = fold(decode(&stream(&chunks)));
        let calls =
            message.tool_calls().map(|call| format!("{}:{}:{}", call.id, call.name, json!(call.arguments)));
        calls.collect::<Vec<_>>()
    };
    let piece = |index: Value, id: Value, name: Value, arguments: Value| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    let null = || Value::Null;
    assert_eq!(
        calls(&[
            piece(json!(0), json!("a"), json!("x"), json!("{\"n\":")),
            piece(json!(1), json!("b"), json!("y"), json!("{\"n\":2}")),
            piece(json!(0), null(), null(), json!("1}")),
        ]),
        ["a:x:{\"n\":1}", "b:y:{\"n\":2}"]
    );
    // The same index for every call; the id repeated in each piece.
    assert_eq!(
        calls(&[
            piece(json!(0), json!("a"), json!("x"), json!("{}")),
            piece(json!(0), json!("b"), json!("y"), json!("{\"n\":")),
            piece(json!(0), json!("b"), json!("y"), json!("2}")),
        ]),
        ["a:x:{}", "b:y:{\"n\":2}"]
    );
    // No index at all; arguments as an object.
    assert_eq!(
        calls(&[
            piece(null(), json!("a"), json!("x"), json!("{\"n\":")),
            piece(null(), json!("a"), null(), json!("1")),
            piece(null(), null(), null(), json!("}")),
            piece(null(), json!("b"), json!("y"), json!({"n": 2})),
        ]),
        ["a:x:{\"n\":1}", "b:y:{\"n\":2}"]
    );
    // The name comes late; there is no id.
    let late = calls(&[
        piece(json!(0), null(), null(), json!("{\"n\"")),
        piece(json!(0), null(), json!("x"), json!(":1}")),
        piece(json!(1), null(), null(), json!("{}")),
    ]);
    assert!(late[0].starts_with("call_") && late[0].ends_with(":x:{\"n\":1}"), "{late:?}");
    assert!(late[1].starts_with("call_") && late[1].ends_with("::{}"), "{late:?}");
    assert_ne!(late[0][..20], late[1][..20]);
}

#[test]
fn reasoning_keeps_the_name_of_its_field() {
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let message = fold(decode(&stream(&[
            delta(json!({field: "hm", "content": ""})),
            delta(json!({field: " so"})),
            delta(json!({field: null, "content": "yes"})),
            finish("stop"),
        ])));
        assert_eq!(
            json!(message.content),
            json!([{"type": "thinking", "thinking": "hm so", "thinkingSignature": field}, {"type": "text", "text": "yes"}])
        );
    }
}

#[test]
fn reasoning_records_are_kept_whole() {
    let record = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text}]);
    let message = fold(decode(&stream(&[
        delta(json!({"reasoning": "h", "reasoning_details": record("h")})),
        delta(json!({"reasoning": "m", "reasoning_details": record("m")})),
        delta(json!({"content": "yes"})),
        finish("stop"),
    ])));
    let signature = r#"[{"type":"reasoning.text","index":0,"text":"hm"}]"#;
    assert_eq!(
        json!(message.content[0]),
        json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature})
    );
}

#[test]
fn a_stream_without_its_end_failed() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    for body in
        [String::new(), text.to_owned(), format!("{text}data: [DONE]\n\n"), format!("{text}data: {{\"cho")]
    {
        let expected = (FailureKind::Retryable, "Stream ended without finish_reason".to_owned());
        assert_eq!(failure(&body), expected, "{body}");
    }
    let message = fold(decode(text));
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hi", StopReason::Error));
    assert_eq!(failure("{\"id\":\"x\",\"choices\":[").0, FailureKind::Retryable);
    let lenient = model(json!({"supportsFinishReason": false}));
    let message = fold(decode_with(&lenient, [text.as_bytes()]));
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hi", StopReason::Stop));
}

#[test]
fn what_came_is_sealed_before_a_failure() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"message\":\"boom\",\"code\":502}}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n";
    let deltas = decode(body);
    assert!(matches!(&deltas[2], Delta::Seal { index: 0, seal } if seal.incomplete));
    let Delta::Failed { failure, .. } = &deltas[3] else { panic!("{deltas:?}") };
    assert_eq!(
        (failure.kind, failure.message.as_str(), deltas.len()),
        (FailureKind::Retryable, "502: boom", 4)
    );
}

#[test]
fn errors_inside_of_a_stream() {
    let error = |error: &str| failure(&format!("data: {{\"error\":{error}}}\n\n"));
    assert_eq!(error("\"plain\""), (FailureKind::Fatal, "plain".into()));
    assert_eq!(
        error(r#"{"message":"Overloaded","type":"x"}"#),
        (FailureKind::Retryable, "Overloaded".into())
    );
    assert_eq!(
        error(r#"{"type":"overloaded_error"}"#),
        (FailureKind::Retryable, r#"{"type":"overloaded_error"}"#.into())
    );
    assert_eq!(error(r#"{"message":"no","code":"429"}"#), (FailureKind::Retryable, "429: no".into()));
    assert_eq!(
        failure("event: error\ndata: {\"message\":\"busy\"}\n\n"),
        (FailureKind::Retryable, "busy".into())
    );
    assert_eq!(failure("event: error\ndata: went away\n\n").1, "went away");
    let (kind, message) =
        failure(r#"{"object":"error","message":"too long: maximum context length is 5 tokens","code":400}"#);
    assert_eq!(
        (kind, message.as_str()),
        (FailureKind::ContextOverflow, "400: too long: maximum context length is 5 tokens")
    );
}

#[test]
fn answers_that_are_no_answer() {
    let (kind, message) = failure("\r\n<!DOCTYPE html><html>log in</html>");
    assert_eq!(kind, FailureKind::Fatal);
    assert!(message.starts_with("http://host:1/v1/chat/completions answered with a web page"), "{message}");
    assert!(message.contains("baseUrl of provider \"p\""), "{message}");
    let (_, message) = failure("{\"status\":\"ok\"}");
    assert!(message.contains("JSON that is no answer of a model: {\"status\":\"ok\"}"), "{message}");
    let (_, message) = failure("Not what you want\n");
    assert!(message.ends_with("no event stream: Not what you want"), "{message}");
    let (kind, message) = failure("data: {\"choices\": oops}\n\ndata: [DONE]\n\n");
    assert_eq!(kind, FailureKind::Fatal);
    assert!(message.starts_with("host:1 sent an event that cannot be read"), "{message}");
    let (kind, message) = failure(&stream(&[finish("content_filter")]));
    assert_eq!(
        (kind, message.as_str()),
        (FailureKind::ModelRefusal, "Provider finish_reason: content_filter")
    );
}

#[test]
fn an_answer_that_lacks_only_its_usage_is_complete() {
    let mut decoder = decoder(&model(Value::Null));
    let mut deltas = Vec::new();
    let chunks = [delta(json!({"content": "Hi"})), finish("stop")];
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    decoder.feed(body.as_bytes(), &mut deltas);
    assert!(decoder.has_all_content() && !decoder.is_finished());
    decoder.fail(Failure::new(FailureKind::Retryable, "reset"), &mut deltas);
    assert_eq!(fold(deltas).stop_reason, StopReason::Stop);
}

#[test]
fn an_abort_keeps_what_came() {
    let mut decoder = decoder(&model(Value::Null));
    let mut deltas = Vec::new();
    decoder.feed(format!("data: {}\n\n", delta(json!({"content": "x x "}))).as_bytes(), &mut deltas);
    decoder.fail(Failure::aborted(), &mut deltas);
    let message = fold(deltas);
    assert_eq!((message.text().as_str(), message.stop_reason), ("x x ", StopReason::Aborted));
}

#[test]
fn arguments_cut_by_the_output_limit_are_read_as_far_as_they_go() {
    let piece = json!({"index": 0, "id": "a", "function": {"name": "write", "arguments": "{\"path\":\"a\",\"content\":\"lon"}});
    let message = fold(decode(&stream(&[delta(json!({ "tool_calls": [piece] })), finish("length")])));
    let call = message.tool_calls().next().unwrap();
    assert_eq!(json!(call.arguments), json!({"path": "a", "content": "lon"}));
    assert_eq!(call.arguments_error, None);
}
