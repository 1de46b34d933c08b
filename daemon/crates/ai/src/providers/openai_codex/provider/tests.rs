use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};
use serde_json::{Value, json};

use super::*;
use crate::{Account, CacheRetention, Credentials, Secret};

fn request(base_url: &str, messages: Value) -> Request {
    let model = json!({"id": "gpt-x", "name": "x", "api": "openai-codex-responses", "provider": "openai-codex",
        "baseUrl": base_url, "reasoning": true, "maxTokens": 4096});
    let model: Model = serde_json::from_value(model).unwrap();
    let messages: Vec<Json<Message>> = serde_json::from_value(messages).unwrap();
    Request {
        session_id: "s-1".into(),
        cache_retention: CacheRetention::Long,
        credentials: Credentials {
            api_key: Some(Secret::new("hush")),
            account: Account { account_id: Some("acc".into()), ..Account::default() },
            ..Credentials::default()
        },
        ..Request::new(Arc::new(model), messages)
    }
}

fn body_of(request: &Request) -> Value {
    serde_json::from_slice(&OpenAiCodex.outgoing(request).unwrap().body).unwrap()
}

#[test]
fn headers_name_the_account_and_us() {
    let request = request("https://chatgpt.com/backend-api", json!([]));
    let outgoing = OpenAiCodex.outgoing(&request).unwrap();
    assert_eq!(outgoing.url.as_str(), "https://chatgpt.com/backend-api/codex/responses");
    let mut headers: Vec<(&str, &str)> =
        outgoing.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    headers.sort_unstable();
    let agent = headers.iter().find(|(name, _)| *name == "user-agent").unwrap().1;
    assert!(agent.starts_with("agentd/"), "{agent}");
    assert_eq!(
        headers,
        [
            ("accept", "text/event-stream"),
            ("authorization", "Bearer hush"),
            ("chatgpt-account-id", "acc"),
            ("content-type", "application/json"),
            ("openai-beta", "responses=experimental"),
            ("originator", "agentd"),
            ("session-id", "s-1"),
            ("user-agent", agent),
            ("x-client-request-id", "s-1"),
        ]
    );
}

#[test]
fn the_prompt_goes_as_instructions_and_answers_are_not_limited() {
    let tools =
        json!([{"name": "t", "description": "does", "parameters": {"type": "object", "properties": {}}}]);
    let mut request = request(
        "https://h",
        json!([{"role": "system", "content": "Be brief.", "toolsAdded": tools}, {"role": "user", "content": "hi"}]),
    );
    request.thinking_level = ThinkingLevel::High;
    let include = json!(["reasoning.encrypted_content"]);
    let expected = json!({
        "model": "gpt-x",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "stream": true, "store": false, "prompt_cache_key": "s-1",
        "text": {"verbosity": "low"}, "tool_choice": "auto", "parallel_tool_calls": true, "include": include,
        "reasoning": {"effort": "high", "summary": "auto"},
        "tools": [{"type": "function", "name": "t", "description": "does", "strict": null,
            "parameters": {"type": "object", "properties": {}}}],
    });
    assert_eq!(body_of(&request), expected);
    request.thinking_level = ThinkingLevel::Off;
    let body = body_of(&request);
    assert_eq!((&body["reasoning"], &body["include"]), (&json!({"effort": "none"}), &include));
}

#[test]
fn without_a_prompt_there_is_one_all_the_same() {
    let body = body_of(&request("https://h", json!([{"role": "user", "content": "hi"}])));
    assert_eq!(body["instructions"], "You are a helpful assistant.");
}

#[test]
fn addresses_may_have_a_part_of_the_path() {
    for (base, expected) in [
        ("https://h", "https://h/codex/responses"),
        ("https://h/x/", "https://h/x/codex/responses"),
        ("https://h/codex/", "https://h/codex/responses"),
        ("https://h/codex/responses", "https://h/codex/responses"),
        ("https://h/codex?a=1", "https://h/codex/responses?a=1"),
    ] {
        let outgoing = OpenAiCodex.outgoing(&request(base, json!([]))).unwrap();
        assert_eq!(outgoing.url.as_str(), expected, "{base}");
    }
}

#[test]
fn a_key_is_no_login() {
    let mut request = request("https://h", json!([]));
    request.credentials.account = Account::default();
    let failure = OpenAiCodex.outgoing(&request).map(|_| ()).unwrap_err();
    assert!(failure.message.contains("agentctl login openai-codex"), "{failure}");
}
