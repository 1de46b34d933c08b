use std::sync::Arc;

use agentd_ai::{Accumulator, BlockKind, BlockSeal, Delta};
use agentd_protocol::{
    event::{Event, MessageStart, MessageUpdate},
    message::{AssistantMessage, StopReason, Usage},
    model::Model,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn session() -> Arc<str> {
    "s".into()
}

fn shown(view: &mut CumulativeView, line: &str) -> Option<Value> {
    let line = view.event(&session(), line.as_bytes())?;
    Some(serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {line:?}")))
}

fn model() -> Arc<Model> {
    Arc::new(Model { id: "m\"".into(), api: "a".into(), provider: "p".into(), ..Model::placeholder() })
}

fn line(event: impl Into<Event>) -> String {
    serde_json::to_string(&event.into()).unwrap()
}

fn message(message: AssistantMessage) -> Json<Message> {
    Json::new(Message::Assistant(message)).unwrap()
}

/// The answer so far, as old clients know it: complete but for its end.
fn expected(accumulator: &Accumulator) -> Value {
    let so_far = AssistantMessage { stop_reason: StopReason::Stop, ..accumulator.so_far() };
    serde_json::from_str(message(so_far).text()).unwrap()
}

/// A whole block.
#[derive(Debug, Clone)]
struct Streamed {
    kind: BlockKind,
    pieces: Vec<String>,
}

fn block() -> impl Strategy<Value = Streamed> {
    let text = "[a-z\"\\\\\n\u{2028}é😀]{0,5}";
    let pieces = || proptest::collection::vec(text, 0..5);
    let cut = |text: String, at: usize| {
        // `best_reading` takes white space at the end away, also in a string.
        let is_fair = |at: &usize| text.get(..*at).is_some_and(|text| !text.ends_with(char::is_whitespace));
        let at = (0..=at.min(text.len())).rev().find(is_fair).unwrap_or(0);
        vec![text[..at].to_owned(), text[at..].to_owned()]
    };
    prop_oneof![
        pieces().prop_map(|pieces| Streamed { kind: BlockKind::Text, pieces }),
        pieces().prop_map(|pieces| Streamed { kind: BlockKind::Thinking, pieces }),
        (text, any::<i32>(), 0usize..40).prop_map(move |(text, number, at)| Streamed {
            kind: BlockKind::ToolCall { id: text.clone(), name: "bash".into() },
            pieces: cut(json!({"command": text, "n": [number, null, {}]}).to_string(), at),
        }),
    ]
}

proptest! {
    /// Also from the middle, where only arguments that are under way stand still.
    #[test]
    fn every_update_carries_what_the_deltas_add_up_to(
        blocks in proptest::collection::vec(block(), 0..4),
        side_by_side: bool,
        joins_at in 0usize..20,
    ) {
        let mut deltas = Vec::new();
        let mut seals = Vec::new();
        for (index, Streamed { kind, pieces }) in blocks.into_iter().enumerate() {
            let is_call = matches!(kind, BlockKind::ToolCall { .. });
            deltas.push((Delta::Open { index, kind }, is_call));
            deltas.extend(pieces.into_iter().map(|delta| (Delta::Extend { index, delta }, is_call)));
            let seal = (Delta::Seal { index, seal: BlockSeal::default() }, false);
            if side_by_side { seals.push(seal) } else { deltas.push(seal) }
        }
        deltas.push((Delta::Usage(Usage { input: 5, ..Usage::default() }), false));
        deltas.extend(seals);
        let mut accumulator = Accumulator::new(model(), 7);
        let frame = AssistantMessage::pending("a", "p", "m\"", 7);
        let start = shown(&mut CumulativeView::default(), &line(MessageStart { message: message(frame.clone()) }));
        prop_assert_eq!(&start.unwrap()["message"]["stopReason"], "stop");
        let (mut view, mut joined) = (CumulativeView::default(), None::<CumulativeView>);
        shown(&mut view, &line(MessageStart { message: message(frame) }));
        let mut call_is_joined = false;
        for (at, (delta, of_call)) in deltas.into_iter().enumerate() {
            let Some(assistant_message_event) = accumulator.fold(delta) else { continue };
            let usage = accumulator.usage_json();
            let update = line(MessageUpdate { usage, assistant_message_event });
            let got = shown(&mut view, &update).unwrap();
            let (wanted, plain): (Value, Value) = (expected(&accumulator), serde_json::from_str(&update).unwrap());
            prop_assert_eq!(&got["message"], &wanted);
            prop_assert_eq!(&got["assistantMessageEvent"]["partial"], &wanted);
            prop_assert_eq!(&got["assistantMessageEvent"]["delta"], &plain["assistantMessageEvent"]["delta"]);
            prop_assert_eq!(&got["usage"], &plain["usage"]);
            if let Some(joined) = &mut joined {
                let got = shown(joined, &update).unwrap();
                if !call_is_joined {
                    prop_assert_eq!(&got["message"], &wanted);
                }
                prop_assert!(got["message"]["content"].is_array());
            }
            if at == joins_at {
                let mut late = CumulativeView::default();
                late.joined(&session(), &message(accumulator.so_far()));
                (joined, call_is_joined) = (Some(late), of_call || side_by_side);
            }
        }
    }
}

#[test]
fn nobody_hears_of_system_messages() {
    let mut view = CumulativeView::default();
    for kind in ["message_start", "message_end"] {
        assert_eq!(
            shown(&mut view, &format!(r#"{{"type":"{kind}","message":{{"role":"system","content":""}}}}"#)),
            None
        );
        let user = format!(r#"{{"type":"{kind}","message":{{"role":"user","content":"role system"}}}}"#);
        assert_eq!(shown(&mut view, &user), Some(serde_json::from_str(&user).unwrap()));
    }
    let end =
        r#"{"type":"agent_end","messages":[{"role":"system"},{"role":"user","n":1.0}],"willRetry":false}"#;
    let got = view.event(&session(), end.as_bytes()).unwrap();
    assert_eq!(&*got, br#"{"type":"agent_end","messages":[{"role":"user","n":1.0}],"willRetry":false}"#);
    let listed = r#"{"id":1,"type":"response","command":"get_messages","success":true,"data":{"messages":[{"role":"system"},{"n":1.0,"role":"user"}]}}"#;
    let got = view.response(listed.as_bytes());
    assert_eq!(&*got, br#"{"id":1,"type":"response","command":"get_messages","success":true,"data":{"messages":[{"n":1.0,"role":"user"}]}}"#);
    let other = r#"{"id":"\"command\":\"get_messages\"","type":"response","command":"x","success":true}"#;
    assert_eq!(&*view.response(other.as_bytes()), other.as_bytes());
    let failed = r#"{"type":"response","command":"get_messages","success":false,"error":"e"}"#;
    assert_eq!(&*view.response(failed.as_bytes()), failed.as_bytes());
}

#[test]
fn an_update_without_a_beginning_is_passed_on() {
    let update = r#"{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"x"}}"#;
    let mut view = CumulativeView::default();
    assert_eq!(&*view.event(&session(), update.as_bytes()).unwrap(), update.as_bytes());
}
