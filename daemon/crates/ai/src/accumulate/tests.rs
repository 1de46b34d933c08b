use agentd_protocol::model::ModelCost;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn model() -> Arc<Model> {
    Arc::new(Model {
        id: "fake".into(),
        api: "openai-completions".into(),
        provider: "fake".into(),
        cost: ModelCost { output: 2.0, ..ModelCost::default() },
        ..Model::placeholder()
    })
}

fn fold(deltas: Vec<Delta>) -> (Vec<Value>, AssistantMessage) {
    let mut accumulator = Accumulator::new(model(), 7);
    let events = deltas
        .into_iter()
        .filter_map(|delta| accumulator.fold(delta))
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    (events, accumulator.into_message())
}

fn call(index: usize) -> Delta {
    Delta::Open { index, kind: BlockKind::ToolCall { id: format!("call_{index}"), name: "bash".into() } }
}

fn text(index: usize) -> Delta {
    Delta::Open { index, kind: BlockKind::Text }
}

fn extend(index: usize, delta: &str) -> Delta {
    Delta::Extend { index, delta: delta.into() }
}

fn seal(index: usize) -> Delta {
    Delta::Seal { index, seal: BlockSeal::default() }
}

fn done() -> Delta {
    Delta::Done { stop_reason: StopReason::ToolUse, raw_stop_reason: Some("tool_calls".into()) }
}

#[test]
fn what_the_adapter_has_priced_keeps_its_price() {
    let priced = agentd_protocol::message::Cost {
        output: 0.5,
        total: 0.5,
        total_from_provider: Some(false),
        ..Default::default()
    };
    let usage = Usage { output: 1_000_000, cost: priced.clone(), ..Usage::default() };
    let (_, message) = fold(vec![Delta::Usage(usage.clone()), done()]);
    assert_eq!(message.usage.cost, priced);
    let (_, message) = fold(vec![Delta::Usage(Usage { cost: Default::default(), ..usage }), done()]);
    assert_eq!(message.usage.cost.total, 2.0);
}

#[test]
fn counts_beyond_all_reason_are_harmless() {
    let most = u64::MAX;
    let usage = Usage { input: most, output: most, cache_read: most, cache_write: most, ..Usage::default() };
    let usage = Usage {
        cache_write1h: Some(most),
        reasoning: Some(most),
        total_tokens: most,
        cost: Cost::default(),
        ..usage
    };
    let (_, message) = fold(vec![Delta::Usage(usage), done()]);
    let counted = &message.usage;
    let parts =
        [counted.input, counted.output, counted.cache_read, counted.cache_write, counted.total_tokens];
    assert_eq!(parts, [number::MAX_COUNT; 5]);
    assert_eq!(
        (counted.cache_write1h, counted.reasoning),
        (Some(number::MAX_COUNT), Some(number::MAX_COUNT))
    );
    assert!(counted.cost.total.is_finite());
}

#[test]
fn an_answer_with_a_tool_call_has_the_shape_of_pi() {
    let usage = Usage { input: 100, output: 20, reasoning: Some(0), total_tokens: 120, ..Usage::default() };
    let (events, message) = fold(vec![
        Delta::Started,
        Delta::ResponseId("r1".into()),
        text(0),
        extend(0, "Running."),
        call(1),
        extend(1, ""),
        extend(1, "{\"command\":\""),
        extend(1, "echo hi; exit 3\"}"),
        Delta::Usage(usage),
        seal(0),
        seal(1),
        done(),
    ]);
    assert_eq!(
        Value::Array(events),
        json!([
            {"type": "text_start", "contentIndex": 0},
            {"type": "text_delta", "contentIndex": 0, "delta": "Running."},
            {"type": "toolcall_start", "contentIndex": 1, "id": "call_1", "toolName": "bash"},
            {"type": "toolcall_delta", "contentIndex": 1, "delta": ""},
            {"type": "toolcall_delta", "contentIndex": 1, "delta": "{\"command\":\""},
            {"type": "toolcall_delta", "contentIndex": 1, "delta": "echo hi; exit 3\"}"},
            {"type": "text_end", "contentIndex": 0, "content": "Running."},
            {"type": "toolcall_end", "contentIndex": 1, "toolCall": {"type": "toolCall", "id": "call_1",
                "name": "bash", "arguments": {"command": "echo hi; exit 3"}}},
        ])
    );
    assert_eq!(
        serde_json::to_string(&message).unwrap(),
        r#"{"content":[{"type":"text","text":"Running."},{"type":"toolCall","id":"call_1","name":"bash","arguments":{"command":"echo hi; exit 3"}}],"api":"openai-completions","provider":"fake","model":"fake","usage":{"input":100,"output":20,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":120,"cost":{"input":0,"output":0.000039999999999999996,"cacheRead":0,"cacheWrite":0,"total":0.000039999999999999996,"totalFromProvider":false}},"stopReason":"toolUse","timestamp":7,"responseId":"r1","rawStopReason":"tool_calls"}"#
    );
}

#[test]
fn an_aborted_answer_keeps_what_came() {
    let failure = Failure::new(FailureKind::Aborted, "whatever");
    let (_, message) = fold(vec![
        text(0),
        extend(0, "x x "),
        call(1),
        extend(1, "{\"command\":\"ls /tm"),
        Delta::Failed { failure, raw_stop_reason: None },
        extend(0, "too late"),
    ]);
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(message.error_message.as_deref(), Some("Request was aborted"));
    assert_eq!(message.text(), "x x ");
    let call = message.tool_calls().next().unwrap();
    assert_eq!((json!(call.arguments), &call.arguments_error), (json!({"command": "ls /tm"}), &None));
    assert_eq!(message.usage, Usage::default());
}

#[test]
fn a_failure_carries_its_text_and_kind() {
    let mut accumulator = Accumulator::new(model(), 0);
    let failure = Failure::new(FailureKind::Retryable, "503: busy");
    accumulator.fold(Delta::Failed { failure: failure.clone(), raw_stop_reason: None });
    assert!(accumulator.is_finished());
    assert_eq!(accumulator.failure(), Some(&failure));
    let message = accumulator.into_message();
    assert_eq!(
        (message.stop_reason, message.error_message.as_deref()),
        (StopReason::Error, Some("503: busy"))
    );
}

#[test]
fn unreadable_arguments_are_an_error_of_the_call() {
    let (events, message) = fold(vec![call(0), extend(0, "{\"command\":\"rm -rf /tmp/x"), seal(0), done()]);
    let call = message.tool_calls().next().unwrap();
    assert!(call.arguments.is_empty());
    assert!(call.arguments_error.as_deref().unwrap().contains("breaks off"));
    assert_eq!(events[2]["toolCall"]["argumentsError"], json!(call.arguments_error));
}

#[test]
fn the_usage_is_serialised_once_per_change() {
    let mut accumulator = Accumulator::new(model(), 0);
    let zero = accumulator.usage_json();
    assert_eq!(zero.text(), serde_json::to_string(&Usage::default()).unwrap());
    let usage = Usage { output: 5, ..Usage::default() };
    accumulator.fold(Delta::Usage(usage.clone()));
    let first = accumulator.usage_json();
    accumulator.fold(Delta::Usage(usage));
    assert_ne!(first, zero);
    assert!(std::ptr::eq(first.text(), accumulator.usage_json().text()));
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let index = 0..4_usize;
    prop_oneof![
        Just(Delta::Started),
        index.clone().prop_map(text),
        index.clone().prop_map(call),
        index.clone().prop_map(|index| Delta::Open { index, kind: BlockKind::Thinking }),
        (index.clone(), "[a{\"}:]{0,3}").prop_map(|(index, delta)| extend(index, &delta)),
        (index, any::<bool>()).prop_map(|(index, incomplete)| {
            Delta::Seal { index, seal: BlockSeal { incomplete, ..BlockSeal::default() } }
        }),
        Just(done()),
        Just(Delta::Failed { failure: Failure::aborted(), raw_stop_reason: None }),
    ]
}

proptest! {
    /// Looking at an answer gives what it would be if it broke off here, and changes nothing.
    #[test]
    fn an_answer_so_far_is_what_came(deltas in prop::collection::vec(any_delta(), 0..24)) {
        let mut watched = Accumulator::new(model(), 7);
        for at in 0..deltas.len() {
            watched.fold(deltas[at].clone());
            prop_assert_eq!(watched.so_far(), fold(deltas[..=at].to_vec()).1);
        }
    }

    /// Whatever comes, the events rebuild the answer: a start for each block, and deltas that add up to it.
    #[test]
    fn events_rebuild_the_answer(deltas in prop::collection::vec(any_delta(), 0..24)) {
        let (events, message) = fold(deltas);
        let mut texts: Vec<String> = Vec::new();
        for event in &events {
            let index = event["contentIndex"].as_u64().unwrap() as usize;
            let name = event["type"].as_str().unwrap();
            if name.ends_with("_start") {
                prop_assert_eq!(index, texts.len());
                texts.push(String::new());
            } else if let Some(delta) = event["delta"].as_str() {
                texts[index].push_str(delta);
            } else if let Some(content) = event["content"].as_str() {
                prop_assert_eq!(content, &texts[index]);
            }
        }
        prop_assert_eq!(texts.len(), message.content.len());
        for (text, block) in texts.iter().zip(&message.content) {
            match block {
                ContentBlock::Text { text: whole, .. } => prop_assert_eq!(text, whole),
                ContentBlock::Thinking { thinking, .. } => prop_assert_eq!(text, thinking),
                ContentBlock::ToolCall(_) | ContentBlock::Image(_) => {}
            }
        }
    }
}

#[test]
fn what_came_since_is_told_once() {
    let mut accumulator = Accumulator::new(model(), 7);
    let mut seen = SeenContent::default();
    let piece = |block, kind, text: &str, signature: Option<&str>| AnswerPiece {
        block,
        kind,
        text: text.into(),
        signature: signature.map(Into::into),
        redacted: false,
    };
    let open = |index, kind| Delta::Open { index, kind };
    accumulator.fold(open(0, BlockKind::Thinking));
    accumulator.fold(extend(0, "Hä"));
    assert_eq!(accumulator.since(&mut seen), [piece(0, AnswerPieceKind::Thinking, "Hä", None)]);
    assert_eq!(accumulator.since(&mut seen), []);
    accumulator.fold(extend(0, "?"));
    let signed = BlockSeal { signature: Some("s".into()), ..BlockSeal::default() };
    accumulator.fold(Delta::Seal { index: 0, seal: signed });
    accumulator.fold(open(1, BlockKind::ToolCall { id: "c".into(), name: "n".into() }));
    accumulator.fold(extend(1, "{"));
    accumulator.fold(open(2, BlockKind::Text));
    accumulator.fold(extend(2, "On"));
    assert_eq!(
        accumulator.since(&mut seen),
        [piece(0, AnswerPieceKind::Thinking, "?", Some("s")), piece(2, AnswerPieceKind::Text, "On", None)]
    );
    accumulator.fold(extend(2, "e"));
    accumulator.fold(seal(2));
    assert_eq!(accumulator.since(&mut seen), [piece(2, AnswerPieceKind::Text, "e", None)]);
    assert_eq!(accumulator.since(&mut seen), []);
}
