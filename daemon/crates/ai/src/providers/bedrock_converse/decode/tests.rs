use std::{fs, path::Path, sync::Arc};

use agentd_protocol::{
    message::{AssistantMessage, StopReason},
    model::Model,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    Accumulator, BlockKind, BlockSeal,
    failure::{FailureKind, classify_message},
    http::{
        BodyDecoder, Redactor,
        event_stream::tests::{event, exception},
        laws,
    },
};

fn server() -> Server {
    let url = reqwest::Url::parse("http://host:1/model/m/converse-stream").unwrap();
    Server::new(&url, "amazon-bedrock".into(), Redactor::default())
}

fn decoder() -> BodyDecoder<ConverseDecoder> {
    BodyDecoder::new(server(), ConverseDecoder::new(server()))
}

fn decode(body: &[u8]) -> Vec<Delta> {
    let mut decoder = decoder();
    let mut deltas = Vec::new();
    decoder.feed(body, &mut deltas);
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    assert!(decoder.is_finished());
    deltas
}

fn fold(deltas: Vec<Delta>) -> AssistantMessage {
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    for delta in deltas {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

fn data(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data").join(path)
}

/// A composed body: each line of the file is a frame.
fn composed(name: &str) -> Vec<u8> {
    let text = fs::read_to_string(data(&format!("composed/{name}"))).unwrap();
    let frame = |line: &str| {
        let (name, payload) = line.split_once(' ').unwrap();
        match name.strip_prefix('!') {
            Some(name) => exception(name, payload),
            None => event(name, payload),
        }
    };
    text.lines().flat_map(frame).collect()
}

fn check(name: &str, content: Value, stop_reason: StopReason) -> AssistantMessage {
    let message = fold(decode(&composed(&format!("bedrock-{name}.frames"))));
    assert_eq!((json!(message.content), message.stop_reason), (content, stop_reason), "{name}: {message:?}");
    message
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

#[test]
fn every_body_keeps_the_laws() {
    let mut count = 0;
    for folder in ["captures", "composed"] {
        for entry in fs::read_dir(data(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let body = if name.contains("bedrock-") && name.ends_with(".body") {
                fs::read(data(&format!("{folder}/{name}"))).unwrap()
            } else if name.ends_with(".frames") {
                composed(&name)
            } else {
                continue;
            };
            laws::check_body(&name, &body, decoder);
            count += 1;
        }
    }
    assert!(count >= 17, "{count} bodies");
}

#[test]
fn thinking_text_and_a_call() {
    let thinking = json!({"type": "thinking", "thinking": "The user wants a list.",
        "thinkingSignature": "EqoBCkgIARABGgIYAiKs"});
    let ls = call("tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "ls", json!({"path": "src"}));
    let message = check("thinking", json!([thinking, said("Here it is:"), ls]), StopReason::ToolUse);
    let usage = &message.usage;
    assert_eq!((usage.input, usage.output, usage.total_tokens), (20, 33, 1053));
    assert_eq!((usage.cache_read, usage.cache_write, usage.cache_write1h), (900, 100, Some(40)));
    assert_eq!(message.raw_stop_reason.as_deref(), Some("tool_use"));
}

#[test]
fn thinking_that_is_withheld() {
    let redacted = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "redacted": true,
        "thinkingSignature": "AQIDBAUG"});
    let omitted = json!({"type": "thinking", "thinking": "", "thinkingSignature": "c2lnbmVk"});
    check("redacted", json!([redacted, omitted, said("Done.")]), StopReason::Stop);
}

#[test]
fn calls_that_are_cut_or_broken() {
    let cut = call("tooluse_1", "write", json!({"path": "a.txt", "content": "half of"}));
    check("max-tokens", json!([cut]), StopReason::Length);
    let message = fold(decode(&composed("bedrock-broken-arguments.frames")));
    let content = json!(message.content);
    assert_eq!(content[0]["arguments"], json!({"command": "a\tb"}));
    assert!(content[1]["argumentsError"].is_string(), "{content}");
}

#[test]
fn exceptions_in_the_stream() {
    let fails = |name: &str, content: Value, text: &str, kind: FailureKind| {
        let message = check(name, content, StopReason::Error);
        assert_eq!(message.error_message.as_deref(), Some(text), "{name}");
        assert_eq!(classify_message("amazon-bedrock", text), kind, "{name}");
        let deltas = decode(&composed(&format!("bedrock-{name}.frames")));
        let Some(Delta::Failed { failure, .. }) = deltas.last() else { panic!("{deltas:?}") };
        assert_eq!(failure.kind, kind, "{name}");
    };
    fails(
        "throttled",
        json!([said("The first ")]),
        "Throttling error: Too many tokens, please wait before trying again.",
        FailureKind::Retryable,
    );
    fails(
        "stream-error",
        json!([call("tooluse_1", "bash", json!({}))]),
        "Model stream error: The system encountered an unexpected error during processing. Try your request again.",
        FailureKind::Retryable,
    );
    fails(
        "validation",
        json!([]),
        "Validation error: The model returned the following errors: Input is too long for requested model.",
        FailureKind::ContextOverflow,
    );
    fails(
        "guardrail",
        json!([said("Sorry, that is not allowed here.")]),
        "Provider stopped with: guardrail_intervened",
        FailureKind::ModelRefusal,
    );
}

#[test]
fn recorded_answers() {
    let capture =
        |name: &str| fold(decode(&fs::read(data(&format!("captures/aimock-bedrock-{name}.body"))).unwrap()));
    let content = |name: &str| json!(capture(name).content);
    let red = "Red, orange, yellow — ünïcödé 🙂 and a line\nmore.";
    for name in ["text", "text-nostream"] {
        let message = capture(name);
        assert_eq!(
            (json!(message.content), message.stop_reason),
            (json!([said(red)]), StopReason::Stop),
            "{name}"
        );
        assert_eq!(message.usage.total_tokens, 18, "{name}");
    }
    let thinking = json!({"type": "thinking", "thinking": "Six times seven is forty-two."});
    assert_eq!(content("reasoning"), json!([thinking, said("42.")]));
    let both = json!([
        said("Both at once."),
        call("tooluse_a1", "bash", json!({"command": "echo one"})),
        call("tooluse_b2", "read", json!({"path": "notes.txt", "limit": 3})),
    ]);
    for name in ["tool-parallel", "tool-nostream"] {
        assert_eq!((content(name), capture(name).stop_reason), (both.clone(), StopReason::ToolUse), "{name}");
    }
    assert_eq!(capture("length").stop_reason, StopReason::Length);
}

#[test]
fn the_first_piece_opens_a_text() {
    let delta = |text: &str| event("contentBlockDelta", &format!("{{\"delta\":{{\"text\":\"{text}\"}}}}"));
    let body =
        [delta(""), delta("a"), delta("b"), event("messageStop", r#"{"stopReason":"end_turn"}"#)].concat();
    let extend = |delta: &str| Delta::Extend { index: 0, delta: delta.to_owned() };
    let raw_stop_reason = Some("end_turn".to_owned());
    assert_eq!(
        decode(&body),
        [
            Delta::Open { index: 0, kind: BlockKind::Text },
            extend("a"),
            extend("b"),
            Delta::Seal { index: 0, seal: BlockSeal::default() },
            Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason },
        ]
    );
}

#[test]
fn answers_that_end_early_or_are_none() {
    let fails = |body: &[u8], kind: FailureKind, text: &str| {
        let deltas = decode(body);
        let Some(Delta::Failed { failure, .. }) = deltas.last() else { panic!("{deltas:?}") };
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(text), "{failure}");
    };
    let early = "Bedrock stream ended without a stop reason";
    fails(b"", FailureKind::Retryable, early);
    let whole = composed("bedrock-thinking.frames");
    fails(&whole[..whole.len() / 2], FailureKind::Retryable, early);
    fails(b"<html>", FailureKind::Fatal, "web page");
    fails(b"data: {\"id\":1}\n\n", FailureKind::Fatal, "no AWS event stream");
    fails(br#"{"message":"The model is not ready: try again"}"#, FailureKind::Retryable, "not ready");
    fails(
        br#"{"__type":"x#AccessDeniedException","Message":"no"}"#,
        FailureKind::Auth,
        "AccessDeniedException: no",
    );
    fails(br#"{"a":1}"#, FailureKind::Fatal, "JSON that is no answer");
    let broken = event("contentBlockDelta", "{\"delta\":");
    fails(&broken, FailureKind::Fatal, "cannot be read");
    let mut damaged = whole;
    damaged[300] ^= 1;
    fails(&damaged, FailureKind::Retryable, "damaged");
    let error = crate::http::event_stream::tests::frame(
        &[(":message-type", "error"), (":error-code", "Oops"), (":error-message", "went wrong")],
        b"",
    );
    fails(&error, FailureKind::Fatal, "Oops: went wrong");
}

/// Events in any order, with members of any kind.
fn any_events() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let block = prop_oneof![
        Just(json!({"text": "t"})),
        Just(json!({"toolUse": {"input": "{\"a\":1}"}})),
        Just(json!({"reasoningContent": {"text": "r"}})),
        Just(json!({"reasoningContent": {"signature": "s"}})),
        Just(json!({"reasoningContent": {"redactedContent": "AQID"}})),
        Just(json!({"reasoningContent": {"redactedContent": "?"}})),
        Just(json!({})),
        Just(Value::Null),
    ];
    let start = prop_oneof![
        Just(json!({"toolUse": {"toolUseId": "a", "name": "t"}})),
        Just(json!({"toolUse": {}})),
        Just(json!({}))
    ];
    let one = (0..3_u64, block, start, 0..12_u8).prop_map(|(number, delta, start, kind)| {
        let index = json!({"contentBlockIndex": number});
        let with = |name: &str, value: Value| {
            let mut body = index.clone();
            body[name] = value;
            body.to_string()
        };
        match kind {
            0..=5 => event("contentBlockDelta", &with("delta", delta)),
            6..=8 => event("contentBlockStart", &with("start", start)),
            9 | 10 => event("contentBlockStop", &index.to_string()),
            _ => event("messageStop", r#"{"stopReason":"tool_use"}"#),
        }
    });
    prop::collection::vec(one, 0..20)
}

proptest! {
    #[test]
    fn any_order_of_events_gives_deltas_in_order(events in any_events()) {
        laws::check_order("any", &decode(&events.concat()));
    }

    #[test]
    fn changed_bytes_never_panic(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = composed("bedrock-thinking.frames");
        let place = place.index(body.len());
        body[place] = byte;
        body.truncate(cut.index(body.len()) + 1);
        laws::check_order("changed", &decode(&body));
    }
}
