//! The assignment of pieces to blocks.

use super::*;

fn added(item: Value) -> Value {
    json!({"type": "response.output_item.added", "item": item})
}

fn done(item: Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

fn at(mut event: Value, index: u64) -> Value {
    event["output_index"] = json!(index);
    event
}

fn call(id: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": id, "call_id": format!("c-{id}"), "name": "read", "arguments": arguments})
}

fn piece(id: &str, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": delta})
}

/// The content of a stream of these events and its end.
fn content(events: &[Value]) -> Value {
    let mut events = events.to_vec();
    events.push(completed(json!({})));
    let message = message(&stream(&events));
    let short = message.content.iter().map(|block| match json!(block) {
        block if block["type"] == "text" => block["text"].clone(),
        block if block["type"] == "thinking" => block["thinking"].clone(),
        block => json!([block["id"], block["arguments"]]),
    });
    short.collect()
}

#[test]
fn pieces_belong_by_place_then_by_id_then_to_the_last() {
    let expected = json!([["c-a|a", {"n": 1}], ["c-b|b", {"n": 2}]]);
    // Places: ids that change with every event mean nothing.
    assert_eq!(
        content(&[
            at(added(call("a", json!(""))), 0),
            at(added(call("b", json!(""))), 1),
            at(piece("x1", "{\"n\":"), 0),
            at(piece("x2", "{\"n\":2}"), 1),
            at(piece("x3", "1}"), 0),
        ]),
        expected
    );
    // CallIds alone.
    assert_eq!(
        content(&[
            added(call("a", json!(""))),
            added(call("b", json!(""))),
            piece("a", "{\"n\":1"),
            piece("b", "{\"n\":2}"),
            piece("a", "}"),
        ]),
        expected
    );
    // Neither.
    assert_eq!(
        content(&[
            added(call("a", json!(""))),
            piece("", "{\"n\":1}"),
            done(call("a", json!(null))),
            added(call("b", json!(""))),
            piece("", "{\"n\":"),
            piece("", "2}"),
        ]),
        expected
    );
    // The same place for all.
    assert_eq!(
        content(&[
            at(added(call("a", json!(""))), 0),
            at(piece("a", "{\"n\":1"), 0),
            at(added(call("b", json!(""))), 0),
            at(piece("a", "}"), 0),
            at(piece("b", "{\"n\":2}"), 0),
            at(done(call("a", json!(null))), 0),
            at(done(call("b", json!(null))), 0),
        ]),
        expected
    );
    // The same id for all.
    let text = |index: u64, delta: &str| {
        at(json!({"type": "response.output_text.delta", "item_id": "m", "delta": delta}), index)
    };
    let message = |text: &str| json!({"type": "message", "id": "m", "content": [{"text": text}]});
    assert_eq!(
        content(&[
            at(added(message("")), 0),
            text(0, "One"),
            at(done(message("One")), 0),
            at(added(message("")), 1),
            text(1, "Two"),
            at(done(message("Two")), 1),
        ]),
        json!(["One", "Two"])
    );
}

#[test]
fn what_the_pieces_lacked_comes_with_the_end() {
    let end =
        |arguments: Value| json!({"type": "response.function_call_arguments.done", "arguments": arguments});
    let expected = json!([["c-a|a", {"n": 1}]]);
    for events in [
        vec![added(call("a", json!(""))), piece("a", "{\"n\""), end(json!("{\"n\":1}"))],
        vec![added(call("a", json!(""))), end(json!({"n": 1}))],
        vec![added(call("a", json!(""))), piece("a", "{\"n\":"), done(call("a", json!("{\"n\":1}")))],
        vec![added(call("a", json!(""))), done(call("a", json!({"n": 1})))],
        vec![done(call("a", json!("{\"n\":1}")))],
        vec![done(call("a", json!("{\"n\":1}"))), done(call("a", json!("{\"n\":1}"))), piece("a", "late")],
        // The same in other words: what came first stays.
        vec![added(call("a", json!(""))), piece("a", "{\"n\": 1}"), done(call("a", json!("{\"n\":1}")))],
        // The name comes late.
        vec![
            added(json!({"type": "function_call", "id": "a"})),
            piece("a", "{\"n\""),
            done(call("a", json!("{\"n\":1}"))),
        ],
    ] {
        assert_eq!(content(&events), expected, "{events:?}");
    }
    let text = |delta: &str| json!({"type": "response.output_text.delta", "delta": delta});
    let whole = json!({"type": "response.output_text.done", "text": "é!"});
    let item = |content: Value| done(json!({"type": "message", "id": "m", "content": content}));
    assert_eq!(content(&[text("é"), whole.clone()]), json!(["é!"]));
    assert_eq!(content(&[added(json!({"type": "message"})), whole]), json!(["é!"]));
    assert_eq!(content(&[text("é"), item(json!([{"text": "é"}, {"refusal": "!"}]))]), json!(["é!"]));
    assert_eq!(content(&[text("é"), item(json!("è!"))]), json!(["é"]));
}

#[test]
fn the_end_of_an_answer_brings_what_nothing_else_brought() {
    let items = json!([
        {"type": "message", "id": "m", "content": [{"text": "Hi"}]},
        call("a", json!("{\"n\":1}")),
    ]);
    let whole = completed(json!({ "output": items }));
    let expected = json!(["Hi", ["c-a|a", {"n": 1}]]);
    assert_eq!(content(std::slice::from_ref(&whole)), expected);
    let begun = [
        at(added(json!({"type": "message", "id": "m"})), 0),
        json!({"type": "response.output_text.delta", "item_id": "m", "delta": "H"}),
        at(added(call("a", json!(""))), 1),
        whole.clone(),
    ];
    assert_eq!(content(&begun), expected);
    let message = fold(decode([stream(&begun).as_bytes()]));
    assert_eq!(json!(message.content)[0]["textSignature"], r#"{"v":1,"id":"m"}"#);
    let complete = done(json!({"type": "message", "id": "m", "content": [{"text": "Hi"}]}));
    assert_eq!(content(&[complete, done(call("a", json!("{\"n\":1}"))), whole]), expected);
}

#[test]
fn parts_of_reasoning_are_set_apart_by_blank_lines() {
    let delta =
        |text: &str| json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs", "delta": text});
    let part =
        |what: &str| json!({"type": format!("response.reasoning_summary_part.{what}"), "item_id": "rs"});
    let begin = added(json!({"type": "reasoning", "id": "rs", "summary": []}));
    let item = |texts: &[&str]| {
        let summary: Value = texts.iter().map(|text| json!({ "text": text })).collect();
        done(json!({"type": "reasoning", "id": "rs", "summary": summary}))
    };
    let two = json!(["One\n\nTwo"]);
    assert_eq!(
        content(&[
            begin.clone(),
            part("added"),
            delta("One"),
            part("done"),
            part("added"),
            delta("Tw"),
            delta("o"),
            part("done"),
            item(&["One", "Two"]),
        ]),
        two
    );
    assert_eq!(content(&[begin.clone(), part("added"), delta("One"), item(&["One", "Two"])]), two);
    assert_eq!(content(&[begin.clone(), delta("One"), part("done"), item(&["One", "Two"])]), two);
    assert_eq!(content(&[begin.clone(), item(&["One", "Two"])]), two);
    let open = json!({"type": "response.reasoning_text.delta", "item_id": "rs", "delta": "raw"});
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "content": [{"text": "raw!"}]});
    assert_eq!(content(&[begin, open, done(item)]), json!(["raw!"]));
}

#[test]
fn reasoning_is_kept_as_it_came() {
    let item = r#"{ "type":"reasoning", "id":"rs",  "n":1.0, "encrypted_content":"a b\/\u00e9==",
        "summary":[ ]}"#;
    let item = item.replace('\n', "\ndata: ");
    let end = completed(json!({}));
    let body = format!("data: {{\"type\":\"response.output_item.done\",\"item\":{item}}}\n\ndata: {end}\n\n");
    let Delta::Seal { index: 0, seal } = &decode([body.as_bytes()])[1] else { panic!("{body}") };
    let expected =
        r#"{"type":"reasoning","id":"rs","n":1.0,"encrypted_content":"a b\/\u00e9==","summary":[]}"#;
    assert_eq!(seal.signature.as_deref(), Some(expected));
}

#[test]
fn blocks_are_sealed_in_order_and_as_broken_where_they_are() {
    let begun = [
        at(added(call("a", json!(""))), 0),
        at(added(call("b", json!(""))), 1),
        at(piece("a", "{\"path\":\"lon"), 0),
    ];
    let seals = |end: Value| -> Vec<(usize, BlockSeal)> {
        let mut events = begun.to_vec();
        events.push(end);
        let deltas = decode([stream(&events).as_bytes()]).into_iter();
        let seals = deltas.filter_map(|delta| match delta {
            Delta::Seal { index, seal } => Some((index, seal)),
            _ => None,
        });
        seals.collect()
    };
    let all = |incomplete: bool| {
        let seal = BlockSeal { incomplete, ..BlockSeal::default() };
        vec![(0, seal.clone()), (1, seal)]
    };
    assert_eq!(seals(completed(json!({}))), all(false));
    let limit = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}});
    assert_eq!(seals(json!({"type": "response.incomplete", "response": limit})), all(true));
    assert_eq!(seals(json!({"type": "error", "code": "x", "message": "y"})), all(true));
    let mut cut = call("a", json!("{\"path\":\"lon"));
    cut["status"] = json!("incomplete");
    assert!(seals(at(done(cut), 0))[0].1.incomplete);
}

#[test]
fn a_call_needs_an_id_and_a_name() {
    let item = |fields: Value| {
        let mut item = json!({"type": "function_call", "arguments": "{}"});
        item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        done(item)
    };
    assert_eq!(content(&[item(json!({"call_id": "c", "name": "n"}))]), json!([["c", {}]]));
    assert_eq!(content(&[item(json!({"id": "fc", "name": "n"}))]), json!([["fc", {}]]));
    assert_eq!(content(&[item(json!({"call_id": "c"})), item(json!({"name": "n"}))]), json!([]));
}
