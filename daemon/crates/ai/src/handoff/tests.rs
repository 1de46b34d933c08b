use std::collections::HashSet;

use agentd_protocol::Json;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn model(sees_images: bool) -> Model {
    Model {
        id: "m".into(),
        api: "a".into(),
        provider: "p".into(),
        input: if sees_images { vec!["text".into(), "image".into()] } else { vec!["text".into()] },
        ..Model::placeholder()
    }
}

/// The turns in short: `u:text`, `a:text+call`, `r:id=text`, `s:text`.
fn short(turns: &[Turn<'_>]) -> Vec<String> {
    let parts = |parts: &[Part<'_>]| {
        let texts = parts.iter().map(|part| match part {
            Part::Text(text) => text.to_string(),
            Part::Image(image) => format!("<{}>", image.data),
        });
        texts.collect::<Vec<_>>().join("|")
    };
    turns
        .iter()
        .map(|turn| match turn {
            Turn::System(text) => format!("s:{text}"),
            Turn::User(content) => format!("u:{}", parts(content)),
            Turn::Assistant(content) => {
                let blocks = content.iter().map(|part| match part {
                    AssistantPart::Text { text, .. } => (*text).to_owned(),
                    AssistantPart::Thinking { text, signature, .. } => {
                        format!("({text}/{})", signature.unwrap_or(""))
                    }
                    AssistantPart::ToolCall { id, .. } => format!("#{id}"),
                });
                format!("a:{}", blocks.collect::<Vec<_>>().join("+"))
            }
            Turn::Results(answers) => {
                let answers = answers.iter().map(|answer| {
                    let mark = if answer.is_error { "!" } else { "" };
                    format!("{}={}{mark}", answer.call_id, parts(&answer.parts))
                });
                format!("r:{}", answers.collect::<Vec<_>>().join(","))
            }
        })
        .collect()
}

fn check_with(target: &Target<'_>, messages: Value, expected: &[&str]) {
    let messages: Vec<Json<Message>> = serde_json::from_value(messages).unwrap();
    let messages = readable(&messages);
    assert_eq!(short(&prepare(&messages, target).turns), expected);
}

fn target(model: &Model) -> Target<'_> {
    Target {
        model,
        block_images: false,
        system: SystemPlacement::Folded,
        call_id: &|id| id.replace('|', "_"),
    }
}

fn check(messages: Value, expected: &[&str]) {
    check_with(&target(&model(true)), messages, expected);
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "stopReason": "stop"})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": [{"type": "text", "text": text}]})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn open_calls_are_answered_and_stray_results_dropped() {
    check(
        json!([
            user("q"),
            answer(json!([call("1"), call("2")])),
            result("2", "two"),
            user("again"),
            result("9", "x")
        ]),
        &["u:q", "a:#1+#2", "r:1=No result provided!,2=two", "u:again"],
    );
    check(json!([user("q"), answer(json!([call("1")]))]), &["u:q", "a:#1", "r:1=No result provided!"]);
    check(
        json!([
            answer(json!([call("1")])),
            result("1", "a"),
            result("1", "b"),
            answer(json!([call("1")])),
            result("1", "c")
        ]),
        &["a:#1", "r:1=a", "a:#1", "r:1=c"],
    );
}

#[test]
fn results_come_before_what_was_said_meanwhile() {
    let model = model(true);
    let target = Target { system: SystemPlacement::InPlace, ..target(&model) };
    let system = json!({"role": "system", "content": "new rule"});
    check_with(
        &target,
        json!([
            user("q"),
            answer(json!([call("1"), call("2")])),
            result("2", "two"),
            system,
            user("hurry"),
            result("1", "one")
        ]),
        &["u:q", "a:#1+#2", "r:1=one,2=two", "s:new rule", "u:hurry"],
    );
}

#[test]
fn failed_answers_are_skipped_with_their_calls() {
    let mut failed = answer(json!([{"type": "text", "text": "half"}, call("1")]));
    failed["stopReason"] = json!("aborted");
    check(json!([user("q"), failed, result("1", "Operation aborted"), user("go on")]), &["u:q", "u:go on"]);
}

#[test]
fn thinking_stays_with_its_model() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": ""},
        {"type": "thinking", "thinking": "", "redacted": true},
        {"type": "text", "text": "yes", "textSignature": "t"},
        call("a|b"),
    ]);
    check(json!([answer(content.clone()), result("a|b", "ok")]), &["a:(hm/sig)+(/)+yes+#a|b", "r:a|b=ok"]);
    let mut other = answer(content);
    other["model"] = json!("other");
    check(json!([other, result("a|b", "ok")]), &["a:yes+#a_b", "r:a_b=ok"]);
}

#[test]
fn equal_ids_of_one_answer_are_told_apart() {
    check(
        json!([
            answer(json!([call("x"), call("x"), call("x_2")])),
            result("x", "1"),
            result("x", "2"),
            result("x_2", "3")
        ]),
        &["a:#x+#x_2+#x_2_2", "r:x=1,x_2=2,x_2_2=3"],
    );
}

#[test]
fn images_are_hidden_from_the_blind_and_by_choice() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let messages = json!([
        {"role": "user", "content": [text("see"), image("1"), image("2"), text("and"), image("3")]},
        answer(json!([call("1")])),
        {"role": "toolResult", "toolCallId": "1", "content": [image("4"), image("5")]},
    ]);
    check(messages.clone(), &["u:see|<1>|<2>|and|<3>", "a:#1", "r:1=<4>|<5>"]);
    let (blind, seeing) = (model(false), model(true));
    let omitted = "(image omitted: model does not support images)";
    check_with(
        &target(&blind),
        messages.clone(),
        &[
            &format!("u:see|{omitted}|and|{omitted}"),
            "a:#1",
            "r:1=(tool image omitted: model does not support images)",
        ],
    );
    let blocking = Target { block_images: true, ..target(&seeing) };
    let off = "Image reading is disabled.";
    check_with(&blocking, messages, &[&format!("u:see|{off}|and|{off}"), "a:#1", &format!("r:1={off}")]);
}

#[test]
fn derived_messages_become_prompts() {
    let bash = |extra: Value| {
        let mut bash = json!({"role": "bashExecution", "command": "ls", "output": "", "exitCode": 0});
        bash.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        bash
    };
    check(
        json!([
            bash(json!({"output": "a\nb"})),
            bash(json!({"exitCode": 2})),
            bash(json!({"cancelled": true, "truncated": true, "fullOutputPath": "/tmp/o"})),
            bash(json!({"excludeFromContext": true})),
            {"role": "custom", "customType": "c", "content": "note"},
            {"role": "user", "content": null},
            {"role": "user", "content": []},
        ]),
        &[
            "u:Ran `ls`\n```\na\nb\n```",
            "u:Ran `ls`\n(no output)\n\nCommand exited with code 2",
            "u:Ran `ls`\n(no output)\n\n(command cancelled)\n\n[Output truncated. Full output: /tmp/o]",
            "u:note",
        ],
    );
    let messages: Vec<Json<Message>> = serde_json::from_value(json!([
        {"role": "branchSummary", "summary": "B"}, {"role": "compactionSummary", "summary": "C"}
    ]))
    .unwrap();
    let messages = readable(&messages);
    let model = model(true);
    let turns = short(&prepare(&messages, &target(&model)).turns);
    assert!(turns[0].ends_with(":\n\n<summary>\nB</summary>"), "{}", turns[0]);
    assert!(turns[1].ends_with(":\n\n<summary>\nC\n</summary>"), "{}", turns[1]);
}

#[test]
fn system_messages_are_folded_into_the_prompt_or_left_in_place() {
    let messages: Vec<Json<Message>> = serde_json::from_value(json!([
        {"role": "system", "content": "", "sections": {"a": "A"}, "toolsAdded": [{"name": "read"}]},
        user("q"),
        {"role": "system", "content": "", "sections": {"a": "B"}, "toolsAdded": [{"name": "bash"}]},
    ]))
    .unwrap();
    let messages = readable(&messages);
    let model = model(true);
    let folded = prepare(&messages, &target(&model));
    assert_eq!(
        (folded.prompt.as_str(), folded.tools.len(), short(&folded.turns)),
        ("B", 2, vec!["u:q".into()])
    );
    let in_place = prepare(&messages, &Target { system: SystemPlacement::InPlace, ..target(&model) });
    assert_eq!((in_place.prompt.as_str(), in_place.tools.len()), ("A", 2));
    assert_eq!(short(&in_place.turns)[1], "s:Updated system prompt section \"a\":\n\nB");
}

fn any_message() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["1", "2", "3", "a|b"]);
    let stop = prop::sample::select(vec!["stop", "toolUse", "error", "aborted", "length"]);
    let block = prop_oneof![
        Just(json!({"type": "text", "text": "t"})),
        Just(json!({"type": "text", "text": ""})),
        Just(json!({"type": "thinking", "thinking": "x"})),
        id.clone().prop_map(call),
    ];
    prop_oneof![
        Just(user("u")),
        Just(json!({"role": "user", "content": null})),
        Just(json!({"role": "system", "content": "s", "toolsAdded": [{"name": "bash"}]})),
        (prop::collection::vec(block, 0..4), stop, any::<bool>()).prop_map(|(content, stop, same)| {
            let mut answer = answer(Value::Array(content));
            answer["stopReason"] = json!(stop);
            answer["model"] = json!(if same { "m" } else { "other" });
            answer
        }),
        id.prop_map(|id| result(id, "r")),
        Just(json!({"role": "bashExecution", "command": "ls"})),
    ]
}

proptest! {
    /// Every call is answered exactly once, in order and at once; nothing else is answered; no turn is empty.
    #[test]
    fn any_transcript_becomes_legal(values in prop::collection::vec(any_message(), 0..14), in_place in any::<bool>()) {
        let messages: Vec<Json<Message>> = serde_json::from_value(Value::Array(values.clone())).unwrap();
        let messages = readable(&messages);
        let model = model(false);
        let system = if in_place { SystemPlacement::InPlace } else { SystemPlacement::Folded };
        let turns = prepare(&messages, &Target { system, ..target(&model) }).turns;
        let mut open: Vec<String> = Vec::new();
        for turn in &turns {
            match turn {
                Turn::Results(answers) => {
                    let answered: Vec<String> = answers.iter().map(|answer| answer.call_id.to_string()).collect();
                    prop_assert_eq!(&answered, &open);
                    prop_assert!(!open.is_empty());
                    open.clear();
                    continue;
                }
                Turn::User(parts) => prop_assert!(!parts.is_empty()),
                Turn::Assistant(parts) => prop_assert!(!parts.is_empty()),
                Turn::System(text) => prop_assert!(in_place && !text.is_empty()),
            }
            prop_assert!(open.is_empty());
            if let Turn::Assistant(parts) = turn {
                open = parts.iter().filter_map(|part| match part {
                    AssistantPart::ToolCall { id, .. } => Some(id.to_string()),
                    _ => None,
                }).collect();
                let unique: HashSet<&String> = open.iter().collect();
                prop_assert_eq!(unique.len(), open.len());
            }
        }
        prop_assert!(open.is_empty());
        // No prompt of the user is lost.
        let said = |turns: &[Turn<'_>]| turns.iter().filter(|turn| matches!(turn, Turn::User(_))).count();
        let prompts = values.iter().filter(|value| value["role"] == "bashExecution" || value["content"] == "u").count();
        prop_assert_eq!(said(&turns), prompts);
    }
}
