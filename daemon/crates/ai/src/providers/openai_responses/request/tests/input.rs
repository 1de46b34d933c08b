//! The items of the input.

use super::*;
use crate::providers::call_id::hash;

fn check(overrides: Value, messages: Value, expected: Value) {
    assert_eq!(encoded(&request(overrides, messages))["input"], expected);
}

fn wire_user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn wire_text(id: &str, text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "status": "completed", "id": id,
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn api_call(id: Option<&str>, call_id: &str) -> Value {
    let mut call = json!({"type": "function_call", "call_id": call_id, "name": "bash", "arguments": "{\"command\":\"ls\"}"});
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    call
}

fn wire_output(call_id: &str, output: Value) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": output})
}

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"x\/y","n":1.0,"summary":[]}"#;

#[test]
fn an_answer_of_the_same_model_goes_back_as_it_came() {
    let phase = r#"{"v":1,"id":"msg_1","phase":"commentary"}"#;
    let mut text = wire_text("msg_1", "Looking.");
    text["phase"] = json!("commentary");
    let messages = json!([
        user("q"),
        answer(json!([thinking(REASONING), signed("Looking.", phase), call("c1|fc_1"), call("c2")])),
        result("c1|fc_1", json!([super::text("out")])),
        result("c2", json!([])),
    ]);
    check(
        json!({}),
        messages.clone(),
        json!([
            wire_user("q"),
            serde_json::from_str::<Value>(REASONING).unwrap(),
            text,
            api_call(Some("fc_1"), "c1"),
            api_call(None, "c2"),
            wire_output("c1", json!("out")),
            wire_output("c2", json!("(no tool output)")),
        ]),
    );
    // To the byte.
    assert!(body_text(&request(json!({}), messages)).contains(REASONING));
}

#[test]
fn an_answer_of_another_model_loses_what_only_that_one_knows() {
    let messages = json!([
        user("q"),
        answer_of_another(json!([
            thinking(REASONING),
            signed("Hm.", r#"{"v":1,"id":"msg_1"}"#),
            call("c/1|fc_1")
        ])),
        result("c/1|fc_1", json!([super::text("out")])),
    ]);
    let item = format!("fc_{}", hash("fc_1"));
    check(
        json!({}),
        messages,
        json!([
            wire_user("q"),
            wire_text("msg_pi_0", "Hm."),
            api_call(Some(&item), "c_1"),
            wire_output("c_1", json!("out"))
        ]),
    );
}

#[test]
fn reasoning_goes_only_with_what_it_led_to() {
    let other = REASONING.replace("rs_1", "rs_2");
    let messages = json!([
        user("q"),
        answer(json!([thinking(REASONING)])),
        user("and?"),
        answer(json!([thinking(REASONING), super::text("Yes."), thinking(&other)])),
        user("so?"),
        answer(json!([thinking(REASONING), thinking("reasoning_content"), super::text("Once.")])),
    ]);
    check(
        json!({}),
        messages,
        json!([
            wire_user("q"),
            wire_user("and?"),
            serde_json::from_str::<Value>(REASONING).unwrap(),
            wire_text("msg_pi_0", "Yes."),
            wire_user("so?"),
            wire_text("msg_pi_1", "Once."),
        ]),
    );
}

#[test]
fn ids_are_used_once() {
    let own = r#"{"v":1,"id":"msg_pi_0"}"#;
    let messages = json!([
        answer(json!([signed("a", own), signed("b", own), call("c|fc_1"), call("c|fc_2"), call("c_2|fc_1")])),
        result("c|fc_1", json!([super::text("1")])),
        result("c|fc_2", json!([super::text("2")])),
        result("c_2|fc_1", json!([super::text("3")])),
        answer(json!([call("c|fc_1")])),
        result("c|fc_1", json!([super::text("4")])),
    ]);
    check(
        json!({}),
        messages,
        json!([
            wire_text("msg_pi_0", "a"),
            wire_text("msg_pi_1", "b"),
            api_call(Some("fc_1"), "c"),
            api_call(Some("fc_2"), "c_2"),
            api_call(None, "c_2_2"),
            wire_output("c", json!("1")),
            wire_output("c_2", json!("2")),
            wire_output("c_2_2", json!("3")),
            api_call(None, "c_3"),
            wire_output("c_3", json!("4")),
        ]),
    );
    let long = "x".repeat(64);
    let messages = json!([answer_of_another(json!([call(&long)])), answer_of_another(json!([call(&long)]))]);
    let missing = json!("No result provided");
    let shorter = format!("{}_2", "x".repeat(62));
    check(
        json!({}),
        messages,
        json!([
            api_call(None, &long),
            wire_output(&long, missing.clone()),
            api_call(None, &shorter),
            wire_output(&shorter, missing),
        ]),
    );
}

#[test]
fn images_go_with_prompts_and_results() {
    let wire_image =
        json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"});
    let messages = json!([
        {"role": "user", "content": [super::text("see"), image()]},
        answer(json!([call("c1"), call("c2")])),
        result("c1", json!([image()])),
        result("c2", json!([super::text("out"), image(), super::text("more")])),
    ]);
    let words = |text: &str| json!({"type": "input_text", "text": text});
    check(
        json!({}),
        messages.clone(),
        json!([
            {"role": "user", "content": [words("see"), wire_image]},
            api_call(None, "c1"),
            api_call(None, "c2"),
            wire_output("c1", json!([wire_image])),
            wire_output("c2", json!([words("out"), wire_image, words("more")])),
        ]),
    );
    let blind = "(tool image omitted: model does not support images)";
    let input = encoded(&request(json!({"input": ["text"]}), messages))["input"].clone();
    assert_eq!(input[3], wire_output("c1", json!(blind)));
    assert_eq!(input[4], wire_output("c2", json!(format!("out\n{blind}\nmore"))));
}

#[test]
fn later_system_messages_stay_in_place_where_the_model_takes_them() {
    let messages = json!([
        {"role": "system", "content": "", "sections": {"a": "A"}},
        user("q"),
        {"role": "system", "content": "", "sections": {"a": "B"}, "toolsAdded": [{"name": "t", "description": "", "parameters": null}]},
        user("r"),
    ]);
    check(
        json!({}),
        messages.clone(),
        json!([{"role": "system", "content": "B"}, wire_user("q"), wire_user("r")]),
    );
    let overrides = json!({"reasoning": true, "compat": {"supportsMidConvoSystemMessages": true}});
    check(
        overrides.clone(),
        messages.clone(),
        json!([
            {"role": "developer", "content": "A"},
            wire_user("q"),
            {"role": "developer", "content": "Updated system prompt section \"a\":\n\nB"},
            wire_user("r"),
        ]),
    );
    assert_eq!(encoded(&request(overrides, messages))["tools"][0]["name"], "t");
}
