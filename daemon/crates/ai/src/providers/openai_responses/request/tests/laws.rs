//! Laws for any transcript.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const ITEMS: [&str; 3] = [
    r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
    r#"{"type":"reasoning","id":"rs_2","summary":[]}"#,
    r#"{"type":"reasoning","summary":[]}"#,
];

fn any_block(ids: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = Value> {
    let signature =
        prop::sample::select(vec!["", "msg_pi_0", "m", r#"{"v":1,"id":"m","phase":"p"}"#, "{", "\n"]);
    let item = prop::sample::select(ITEMS.iter().copied().chain(["[]", "reasoning", ""]).collect::<Vec<_>>());
    prop_oneof![
        Just(text("t")),
        Just(text("")),
        signature.prop_map(|signature| signed("s", signature)),
        item.prop_map(thinking),
        ids.clone().prop_map(|id| call(&id)),
        ids.prop_map(|id| call(&id)),
    ]
}

fn any_message() -> impl Strategy<Value = Value> {
    // The model's own ids are legal as they are; those of others may be anything.
    let own = ["1", "2", "c|fc_1", "c|fc_2", "d|fc_1", "c_2|x"].map(str::to_owned).to_vec();
    let long = format!("{}|fc_{}", "c".repeat(80), "d".repeat(80));
    let odd = ["toolu/1:é", "|", ""].map(str::to_owned).into_iter().chain([long]);
    let all: Vec<String> = own.iter().cloned().chain(odd).collect();
    let (own, all) = (prop::sample::select(own), prop::sample::select(all));
    let stop = prop::sample::select(vec!["stop", "toolUse", "error", "aborted", "length"]);
    let stopped = |(mut answer, stop): (Value, &str)| {
        answer["stopReason"] = json!(stop);
        answer
    };
    let of_its_own = prop::collection::vec(any_block(own), 0..5).prop_map(|blocks| answer(blocks.into()));
    let of_others = prop::collection::vec(any_block(all.clone()), 0..5)
        .prop_map(|blocks| answer_of_another(blocks.into()));
    prop_oneof![
        Just(user("u")),
        Just(json!({"role": "user", "content": [image()]})),
        Just(json!({"role": "system", "content": "s", "toolsAdded": [{"name": "bash"}]})),
        (of_its_own, stop.clone()).prop_map(stopped),
        (of_others, stop).prop_map(stopped),
        all.prop_map(|id| result(&id, json!([text("r"), image()]))),
    ]
}

fn is_legal(id: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !id.is_empty() && id.len() <= 64 && id.chars().all(legal)
}

fn check(input: &[Value]) -> Result<(), TestCaseError> {
    let mut call_ids = HashSet::new();
    let mut item_ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (place, item) in input.iter().enumerate() {
        if let Some(id) = item["id"].as_str() {
            prop_assert!(is_legal(id) && item_ids.insert(id), "{}", item);
        }
        let kind = item["type"].as_str().unwrap_or("prompt");
        if kind == "function_call_output" {
            // In the order of the calls, and before anything else.
            prop_assert_eq!(&item["call_id"], open.remove(0));
            prop_assert!(item["output"].as_str().is_none_or(|text| !text.is_empty()));
            continue;
        }
        let in_answer = matches!(kind, "function_call" | "message" | "reasoning");
        let goes_on = in_answer && place > 0 && input[place - 1]["type"] != "function_call_output";
        prop_assert!(open.is_empty() || goes_on, "{:?} before {}", open, item);
        match kind {
            "function_call" => {
                let call_id = item["call_id"].as_str().unwrap();
                prop_assert!(is_legal(call_id) && call_ids.insert(call_id), "{}", item);
                prop_assert!(
                    item["id"].is_null() || item["id"].as_str().unwrap().starts_with("fc"),
                    "{}",
                    item
                );
                open.push(call_id);
            }
            "message" => prop_assert!(item["id"].is_string()),
            "reasoning" => {
                let next = input.get(place + 1).map(|next| next["type"].as_str().unwrap_or("prompt"));
                prop_assert!(matches!(next, Some("function_call" | "message" | "reasoning")), "{:?}", next);
            }
            _ => prop_assert!(!item["content"].as_array().is_some_and(Vec::is_empty), "{}", item),
        }
    }
    prop_assert!(open.is_empty());
    Ok(())
}

fn input(messages: &[Value], in_place: bool) -> Vec<Value> {
    let overrides = json!({"compat": {"supportsMidConvoSystemMessages": in_place}});
    match encoded(&request(overrides, Value::Array(messages.to_vec())))["input"].take() {
        Value::Array(items) => items,
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn any_transcript_becomes_legal_input(
        messages in prop::collection::vec(any_message(), 0..12),
        in_place in any::<bool>(),
    ) {
        check(&input(&messages, in_place))?;
    }

    /// Providers cache by the beginning of the input: what was said before stays as it was sent.
    #[test]
    fn a_longer_transcript_begins_like_the_shorter_one(
        mut messages in prop::collection::vec(any_message(), 1..10),
        // A result that comes late takes the place of what stood in for it.
        next in any_message().prop_filter("a result", |message| message["role"] != "toolResult"),
    ) {
        // Until then, everything goes into the leading prompt.
        messages.insert(0, user("first"));
        let before = input(&messages, true);
        messages.push(next);
        let after = input(&messages, true);
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }
}
