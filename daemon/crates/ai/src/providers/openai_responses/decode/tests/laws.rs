//! Laws for any stream.

use proptest::prelude::*;

use super::*;
use crate::http::laws::check_order;

/// An item or an event about one, with the little that servers may leave out, mix up or repeat.
fn any_event() -> impl Strategy<Value = Value> {
    let item_type = prop::sample::select(vec!["message", "reasoning", "function_call", "web_search_call"]);
    let kind = prop::sample::select(vec![
        "output_item.added",
        "output_item.done",
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_part.added",
        "reasoning_summary_part.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "in_progress",
    ]);
    let id = prop::sample::select(vec![json!("a"), json!("b"), json!(""), Value::Null, json!(7)]);
    let index = prop::sample::select(vec![json!(0), json!(1), json!("1"), Value::Null]);
    let text = prop::sample::select(vec![json!("{"), json!("{}"), json!("é\n"), json!({}), Value::Null]);
    let status = prop::sample::select(vec!["completed", "incomplete", "in_progress"]);
    (kind, item_type, id.clone(), id, index, text, status).prop_map(
        |(kind, item_type, id, item_id, index, text, status)| {
            let parts = json!([{ "text": text }, { "refusal": "no" }]);
            json!({
                "type": format!("response.{kind}"), "output_index": index, "item_id": item_id,
                "delta": text, "text": text, "arguments": text,
                "item": {"type": item_type, "id": id, "call_id": item_id, "name": id, "status": status,
                    "arguments": text, "content": parts, "summary": parts},
            })
        },
    )
}

fn any_end() -> impl Strategy<Value = Value> {
    let items = prop::collection::vec(any_event(), 0..3);
    let kind = prop::sample::select(vec![
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
        "x",
    ]);
    let reason = prop::sample::select(vec!["max_output_tokens", "content_filter"]);
    (kind, items, reason).prop_map(|(kind, items, reason)| {
        let output: Vec<&Value> = items.iter().map(|event| &event["item"]).collect();
        json!({"type": kind, "response": {"output": output, "incomplete_details": {"reason": reason}}})
    })
}

proptest! {
    /// Blocks are opened in order, extended only while they are open, sealed once, and the answer ends once.
    #[test]
    fn any_stream_is_a_legal_answer(events in prop::collection::vec(any_event(), 0..12), end in any_end()) {
        let body = stream(&events) + &stream(&[end]);
        let deltas = decode([body.as_bytes()]);
        check_order(&body, &deltas);
    }
}
