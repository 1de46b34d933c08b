//! Laws for every transcript.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn any_text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["t", "", " \n"]).prop_map(text)
}

fn any_content() -> impl Strategy<Value = Value> {
    let block = prop_oneof![any_text(), Just(image("1"))];
    prop::collection::vec(block, 0..4).prop_map(Value::Array)
}

fn any_message() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["1", "2", "a|b", "a_b", ""]);
    let stop = prop::sample::select(vec!["stop", "toolUse", "error", "aborted", "length"]);
    let block = prop_oneof![
        any_text(),
        Just(thinking("x", Some("s"))),
        Just(thinking("", Some("s"))),
        Just(thinking("x", None)),
        Just(thinking("", None)),
        any::<bool>().prop_map(|known| {
            let data = known.then_some("d");
            json!({"type": "thinking", "thinking": "", "thinkingSignature": data, "redacted": true})
        }),
        id.clone().prop_map(call),
    ];
    prop_oneof![
        any_content().prop_map(user),
        Just(user(Value::Null)),
        Just(json!({"role": "system", "content": "s", "toolsAdded": [{"name": "bash"}]})),
        (prop::collection::vec(block, 0..4), stop, any::<bool>()).prop_map(|(content, stop, same)| {
            let mut answer = answer(Value::Array(content));
            answer["stopReason"] = json!(stop);
            answer["model"] = json!(if same { "m" } else { "other" });
            answer
        }),
        (id, any_content(), any::<bool>()).prop_map(|(id, content, failed)| {
            if failed { failed_result(id, content) } else { result(id, content) }
        }),
        Just(json!({"role": "bashExecution", "command": "ls"})),
    ]
}

/// The blocks of a message or of a result, each of which has something in it.
fn full_blocks(content: &Value) -> Result<&[Value], TestCaseError> {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    prop_assert!(!blocks.is_empty(), "{}", content);
    for block in blocks {
        let blank = |name: &str| block[name].as_str().is_none_or(|text| text.trim().is_empty());
        match block["type"].as_str().unwrap_or_default() {
            "text" => prop_assert!(!blank("text")),
            "image" => prop_assert_eq!(&block["source"]["type"], "base64"),
            "redacted_thinking" => prop_assert!(!blank("data")),
            "thinking" => prop_assert!(!blank("signature")),
            "tool_result" if block["content"].is_array() => {
                full_blocks(&block["content"])?;
                prop_assert_eq!(&block["is_error"], &json!(false));
            }
            "tool_result" => prop_assert!(!blank("content")),
            "tool_use" => prop_assert!(block["input"].is_object()),
            other => prop_assert!(false, "{}", other),
        }
    }
    Ok(blocks)
}

fn check_legal(body: &Value) -> Result<(), TestCaseError> {
    let ids = |blocks: &[Value], kind: &str, name: &str| -> Vec<String> {
        let of_kind = blocks.iter().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[name].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut seen = HashSet::new();
    let mut waiting: Vec<String> = Vec::new();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    for message in messages {
        let blocks = full_blocks(&message["content"])?;
        let calls = ids(blocks, "tool_use", "id");
        let answered = ids(blocks, "tool_result", "tool_use_id");
        prop_assert_eq!(&answered, &waiting);
        // Results come before everything else in their message.
        let first = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        prop_assert_eq!(first, answered.len());
        if message["role"] == "user" {
            prop_assert!(calls.is_empty());
        } else {
            prop_assert_eq!(&message["role"], "assistant");
            prop_assert!(answered.is_empty());
            let last = blocks.last().map_or(&Value::Null, |block| &block["type"]);
            prop_assert!(last != "thinking" && last != "redacted_thinking");
        }
        for id in &calls {
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            prop_assert!(id.len() <= 64 && id.chars().all(legal), "{}", id);
            prop_assert!(seen.insert(id.clone()), "{} twice", id);
        }
        waiting = calls;
    }
    prop_assert!(waiting.is_empty());
    Ok(())
}

proptest! {
    /// Any transcript of our own model or of another becomes a request that the API's documentation allows.
    #[test]
    fn any_transcript_becomes_legal(
        values in prop::collection::vec(any_message(), 0..14),
        blind in any::<bool>(),
        retention in prop::sample::select(vec![CacheRetention::None, CacheRetention::Short, CacheRetention::Long]),
    ) {
        let mut values = values;
        // CallIds of our own model are as the server gave them.
        for value in &mut values {
            let own = value["model"] == "m";
            for block in value["content"].as_array_mut().into_iter().flatten() {
                if own && (block["id"] == "a|b" || block["id"] == "") {
                    block["id"] = json!("a_b");
                }
            }
        }
        let overrides = if blind { json!({"input": ["text"]}) } else { json!({}) };
        let request = Request { cache_retention: retention, ..request(&overrides, &Value::Array(values)) };
        let body = encoded(&request);
        check_legal(&body)?;
        let markers = body.to_string().matches("cache_control").count();
        let most = if retention == CacheRetention::None { 0 } else { 3 };
        prop_assert!(markers <= most);
    }
}
