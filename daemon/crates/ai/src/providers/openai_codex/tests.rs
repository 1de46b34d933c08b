use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    Account, CacheRetention, Credentials, Delta, Secret,
    failure::FailureKind,
    providers::openai_responses::one_answer::{answer, ask, failure},
};

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

const EVENTS: &str =
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";

fn greeting(base_url: &str) -> Request {
    request(base_url, json!([{"role": "user", "content": "hi"}]))
}

#[tokio::test]
async fn an_exchange_ends_with_its_last_event() {
    for last in ["response.done", "response.completed"] {
        let body =
            format!("{EVENTS}data: {{\"type\":\"{last}\",\"response\":{{\"status\":\"completed\"}}}}\n\n");
        let answer = answer("200 OK", "text/event-stream", &body);
        let (deltas, sent) = ask(OpenAiCodex, |url| greeting(&format!("{url}/backend-api")), answer).await;
        assert!(deltas.contains(&Delta::Extend { index: 0, delta: "Hi".into() }), "{deltas:?}");
        assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{last}: {deltas:?}");
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /backend-api/codex/responses http/1.1\r\n"), "{head}");
        for header in
            ["authorization: bearer hush", "chatgpt-account-id: acc", "originator: agentd", "session-id: s-1"]
        {
            assert!(head.lines().any(|line| line == header), "{header} in {head}");
        }
        assert_eq!(serde_json::from_str::<Value>(body).unwrap()["store"], false);
    }
}

#[tokio::test]
async fn refusals_are_told_by_what_they_mean() {
    let html = "<html><title>Just a moment...</title><h1>Attention Required!</h1></html>";
    let rows = [
        (
            "429 Too Many Requests",
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":420}}"#,
            FailureKind::Fatal,
            "You have hit your ChatGPT usage limit (plus plan). Try again in ~7 min.",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}"#,
            FailureKind::Retryable,
            "Rate limit reached",
        ),
        ("401 Unauthorized", r#"{"detail":"Bad token hush"}"#, FailureKind::Auth, "Bad token [redacted]"),
        (
            "400 Bad Request",
            r#"{"detail":"The 'gpt-x' model is not supported when using Codex with a ChatGPT account."}"#,
            FailureKind::InvalidRequest,
            "model is not supported",
        ),
        ("403 Forbidden", html, FailureKind::Auth, "Attention Required!"),
        ("502 Bad Gateway", html, FailureKind::Retryable, "502: <html>"),
    ];
    for (status, body, kind, text) in rows {
        let (deltas, _) = ask(OpenAiCodex, greeting, answer(status, "text/html", body)).await;
        let failure = failure(&deltas);
        assert_eq!(failure.kind, kind, "{status} {failure}");
        assert!(failure.message.contains(text), "{status} {failure}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_short_may_be_asked_for_again() {
    let whole =
        answer("200 OK", "text/event-stream", &format!("{EVENTS}data: {{\"type\":\"response.done\"}}\n\n"));
    let without_end = answer("200 OK", "text/event-stream", EVENTS);
    for cut in [whole[..whole.len() - 20].to_owned(), without_end] {
        let (deltas, _) = ask(OpenAiCodex, greeting, cut).await;
        assert!(deltas.contains(&Delta::Extend { index: 0, delta: "Hi".into() }), "{deltas:?}");
        assert_eq!(failure(&deltas).kind, FailureKind::Retryable, "{deltas:?}");
    }
}
