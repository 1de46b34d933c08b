use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};

use super::*;

fn request(id: &str, messages: &Value) -> Request {
    let model = Model {
        id: id.into(),
        api: "google-generative-ai".into(),
        provider: "google".into(),
        input: vec!["text".into(), "image".into()],
        max_tokens: 1000,
        ..Model::placeholder()
    };
    let messages: Vec<Json<Message>> = serde_json::from_value(messages.clone()).unwrap();
    Request::new(Arc::new(model), messages)
}

fn encoded(request: &Request) -> Value {
    serde_json::from_slice(&body(request).unwrap()).unwrap()
}

/// Only the contents.
fn check(id: &str, messages: &Value, expected: Value) {
    let body = encoded(&request(id, messages));
    assert_eq!(
        body,
        json!({"contents": expected, "generationConfig": {"maxOutputTokens": 1000}}),
        "{id} {messages}"
    );
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn answer(model: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "google-generative-ai", "provider": "google",
        "model": model, "stopReason": "toolUse", "timestamp": 0})
}

fn foreign(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "openai-responses", "provider": "openai",
        "model": "gpt", "stopReason": "toolUse", "timestamp": 0})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {"path": "a"}})
}

fn result(id: &str, content: Value, is_error: bool) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": content, "isError": is_error,
        "timestamp": 0})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn image() -> Value {
    json!({"type": "image", "data": "aW1n", "mimeType": "image/png"})
}

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-flash-preview";

#[test]
fn prompts() {
    check(OLD, &json!([user(json!("hi"))]), json!([{"role": "user", "parts": [{"text": "hi"}]}]));
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "aW1n"}});
    check(
        OLD,
        &json!([user(json!([{"type": "text", "text": "what?"}, image()]))]),
        json!([{"role": "user", "parts": [{"text": "what?"}, inline]}]),
    );
}

#[test]
fn the_system_prompt_and_the_tools() {
    let tool = json!({"name": "ls", "description": "Lists", "parameters": {"type": "object",
        "properties": {"kind": {"const": "a"}}}});
    let messages = json!([
        {"role": "system", "content": "Be brief.", "toolsAdded": [tool, {"name": "now", "description": "Time"}], "timestamp": 0},
        user(json!("hi")),
        {"role": "system", "content": "Be kind.", "timestamp": 0},
    ]);
    for id in [OLD, NEW] {
        assert_eq!(
            encoded(&request(id, &messages)),
            json!({
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                "systemInstruction": {"role": "user", "parts": [{"text": "Be brief.\n\nBe kind."}]},
                "tools": [{"functionDeclarations": [
                    {"name": "ls", "description": "Lists", "parametersJsonSchema": {"type": "object",
                        "properties": {"kind": {"enum": ["a"]}}}},
                    {"name": "now", "description": "Time", "parametersJsonSchema": {"type": "object", "properties": {}}},
                ]}],
                "generationConfig": {"maxOutputTokens": 1000},
            })
        );
    }
}

#[test]
fn constrained_arguments_where_they_exist() {
    let messages = json!([{"role": "system", "content": "", "timestamp": 0, "toolsAdded": [
        {"name": "t", "description": "", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
         "constrainedSampling": {"type": "json_schema", "strict": "prefer"}}]}, user(json!("hi"))]);
    let body = encoded(&request(NEW, &messages));
    assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": "VALIDATED"}}));
    let schema = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["a"]), &json!(false)));
    let body = encoded(&request(OLD, &messages));
    assert!(body.get("toolConfig").is_none());
    let schema = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
    assert_eq!(schema, &json!({"type": "object", "properties": {"a": {"type": "string"}}}));
}

#[test]
fn calls_and_results() {
    let messages = |id: &str| {
        json!([
            user(json!("go")),
            answer(id, json!([call("c1"), call("c2")])),
            result("c2", text("b"), true),
            result("c1", text("a"), false),
            user(json!("next")),
        ])
    };
    let turns = |parts: Value, results: Value| {
        json!([
            {"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": parts},
            {"role": "user", "parts": results}, {"role": "user", "parts": [{"text": "next"}]},
        ])
    };
    let args = json!({"path": "a"});
    check(
        OLD,
        &messages(OLD),
        turns(
            json!([{"functionCall": {"name": "ls", "args": args}}, {"functionCall": {"name": "ls", "args": args}}]),
            json!([{"functionResponse": {"name": "ls", "response": {"output": "a"}}},
                {"functionResponse": {"name": "ls", "response": {"error": "b"}}}]),
        ),
    );
    check(
        NEW,
        &messages(NEW),
        turns(
            json!([{"functionCall": {"name": "ls", "args": args, "id": "c1"}},
                {"functionCall": {"name": "ls", "args": args, "id": "c2"}}]),
            json!([{"functionResponse": {"name": "ls", "response": {"output": "a"}, "id": "c1"}},
                {"functionResponse": {"name": "ls", "response": {"error": "b"}, "id": "c2"}}]),
        ),
    );
}

#[test]
fn images_of_results() {
    let messages = |id: &str| {
        json!([
            answer(id, json!([call("c1"), call("c2")])),
            result("c1", json!([image()]), false),
            result(
                "c2",
                json!([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}, image()]),
                false
            ),
        ])
    };
    let args = json!({"path": "a"});
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "aW1n"}});
    check(
        OLD,
        &messages(OLD),
        json!([
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": args}}, {"functionCall": {"name": "ls", "args": args}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "(see attached image)"}}},
                {"functionResponse": {"name": "ls", "response": {"output": "x\ny"}}}]},
            {"role": "user", "parts": [{"text": "Tool result image:"}, inline, inline]},
        ]),
    );
    let body = encoded(&request(NEW, &messages(NEW)));
    assert_eq!(
        body["contents"][1],
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "ls", "response": {"output": "(see attached image)"}, "parts": [inline], "id": "c1"}},
            {"functionResponse": {"name": "ls", "response": {"output": "x\ny"}, "parts": [inline], "id": "c2"}}]})
    );
    // A model that sees no images.
    let mut blind = request(OLD, &messages(OLD));
    blind.model = Arc::new(Model { input: vec!["text".into()], ..(*blind.model).clone() });
    let body = encoded(&blind);
    let first = &body["contents"][1]["parts"][0]["functionResponse"]["response"]["output"];
    assert_eq!(first, "(tool image omitted: model does not support images)");
    assert_eq!(body["contents"].as_array().unwrap().len(), 2);
}

#[test]
fn thinking_goes_back_with_its_signature_to_the_same_model() {
    let thought = json!([
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "YWJj"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "text", "text": "so", "textSignature": "not base64!"},
        {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}, "thoughtSignature": "ZGVm"},
        {"type": "text", "text": "", "textSignature": "Z2hp"},
    ]);
    let messages = json!([user(json!("go")), answer(NEW, thought), result("c1", text("a"), false)]);
    let body = encoded(&request(NEW, &messages));
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"thought": true, "text": "hm", "thoughtSignature": "YWJj"},
            {"thought": true, "text": "unsigned"},
            {"text": "so"},
            {"functionCall": {"name": "ls", "args": {}, "id": "c1"}, "thoughtSignature": "ZGVm"},
            {"text": "", "thoughtSignature": "Z2hp"},
        ])
    );
    let body = encoded(&request("gemini-3-pro", &messages));
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"text": "so"},
            {"functionCall": {"name": "ls", "args": {}, "id": "c1"},
             "thoughtSignature": "skip_thought_signature_validator"},
        ])
    );
}

#[test]
fn calls_of_other_models_are_taken_over() {
    let messages = json!([
        user(json!("go")),
        foreign(
            json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "{}"}, call("call_1|fc_1"), call("é")])
        ),
        result("call_1|fc_1", text("a"), false),
        result("é", text("b"), false),
        user(json!("again")),
        foreign(json!([call("call_2|fc_2"), call("call_3")])),
        result("call_2|fc_2", text("c"), false),
        result("call_3", text("d"), false),
    ]);
    let args = json!({"path": "a"});
    let made = |id: &str| json!({"functionCall": {"name": "ls", "args": args, "id": id}});
    let got = |id: &str, text: &str| json!({"functionResponse": {"name": "ls", "response": {"output": text}, "id": id}});
    let mut first = made("call_2_fc_2");
    // Only what came since the last prompt has to be signed, and of that the first call of each answer.
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    check(
        NEW,
        &messages,
        json!([
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [made("call_1_fc_1"), made("_")]},
            {"role": "user", "parts": [got("call_1_fc_1", "a"), got("_", "b")]},
            {"role": "user", "parts": [{"text": "again"}]},
            {"role": "model", "parts": [first, made("call_3")]},
            {"role": "user", "parts": [got("call_2_fc_2", "c"), got("call_3", "d")]},
        ]),
    );
    let body = encoded(&request(OLD, &messages));
    assert_eq!(body["contents"][1]["parts"][0], json!({"functionCall": {"name": "ls", "args": args}}));
    assert_eq!(body["contents"][4]["parts"][0], json!({"functionCall": {"name": "ls", "args": args}}));
    assert_eq!(normalized(&"x".repeat(70)).len(), 64);
}

#[test]
fn configured_fields_find_their_place() {
    let mut asked = request(OLD, &json!([user(json!("hi"))]));
    let params = json!({"temperature": 0.2, "topK": 3, "safetySettings": [], "maxOutputTokens": 5,
        "generationConfig": {"seed": 1}});
    asked.model = Arc::new(Model {
        sampling_params: params.as_object().cloned(),
        reasoning: true,
        ..(*asked.model).clone()
    });
    asked.thinking_level = ThinkingLevel::Low;
    assert_eq!(
        encoded(&asked),
        json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "safetySettings": [],
            "generationConfig": {"maxOutputTokens": 5, "temperature": 0.2, "topK": 3, "seed": 1,
                "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 2048}}})
    );
}
