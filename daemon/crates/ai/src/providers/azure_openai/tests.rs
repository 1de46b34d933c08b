use std::sync::Arc;

use agentd_protocol::{Json, message::Message, model::Model};
use serde_json::{Value, json};

use super::*;
use crate::{
    Account, CacheRetention, Credentials, Delta, Secret,
    failure::FailureKind,
    providers::openai_responses::one_answer::{answer, ask, failure},
};

fn request(base_url: &str, account: Account) -> Request {
    let model = json!({"id": "gpt-x", "name": "x", "api": "azure-openai-responses", "provider": "azure",
        "baseUrl": base_url, "reasoning": true, "maxTokens": 4096});
    let model: Model = serde_json::from_value(model).unwrap();
    let messages: Vec<Json<Message>> = serde_json::from_value(json!([
        {"role": "system", "content": "Be brief.", "toolsAdded": [{"name": "t", "description": "does", "parameters":
            {"type": "object", "properties": {}}}]},
        {"role": "user", "content": "hi"},
    ]))
    .unwrap();
    Request {
        session_id: "s-1".into(),
        cache_retention: CacheRetention::Long,
        credentials: Credentials { api_key: Some(Secret::new("hush")), account, ..Credentials::default() },
        ..Request::new(Arc::new(model), messages)
    }
}

#[test]
fn a_request_is_that_of_the_responses_api_in_azures_form() {
    let account = Account { deployment: Some("prod".into()), ..Account::default() };
    let outgoing = AzureOpenAi.outgoing(&request("https://r.openai.azure.com/openai/v1", account)).unwrap();
    assert_eq!(outgoing.url.as_str(), "https://r.openai.azure.com/openai/v1/responses?api-version=v1");
    assert_eq!(outgoing.headers["api-key"], "hush");
    assert!(outgoing.headers["api-key"].is_sensitive());
    for absent in ["authorization", "session-id", "x-client-request-id"] {
        assert!(!outgoing.headers.contains_key(absent), "{absent}");
    }
    let body: Value = serde_json::from_slice(&outgoing.body).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "prod",
            "input": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            ],
            "stream": true, "store": false, "prompt_cache_key": "s-1", "max_output_tokens": 4096,
            "reasoning": {"effort": "none"},
            "tools": [{"type": "function", "name": "t", "description": "does", "strict": false,
                "parameters": {"type": "object", "properties": {}}}],
        })
    );
}

#[test]
fn the_version_is_the_users() {
    let check = |base: &str, version: Option<&str>, expected: &str| {
        let account = Account { api_version: version.map(str::to_owned), ..Account::default() };
        let url = AzureOpenAi.outgoing(&request(base, account)).map(|outgoing| outgoing.url.to_string());
        assert_eq!(url.unwrap(), expected);
    };
    check("https://h/v1", Some("preview"), "https://h/v1/responses?api-version=preview");
    check("https://h/v1?api-version=x", None, "https://h/v1/responses?api-version=x");
    check("https://h/v1?team=1", None, "https://h/v1/responses?team=1&api-version=v1");
    let failure = AzureOpenAi.outgoing(&request("", Account::default())).map(|_| ()).unwrap_err();
    assert!(failure.message.contains("https://NAME.openai.azure.com/openai/v1"), "{failure}");
}

#[test]
fn the_model_is_its_own_deployment_by_default() {
    let outgoing = AzureOpenAi.outgoing(&request("https://h", Account::default())).unwrap();
    let body: Value = serde_json::from_slice(&outgoing.body).unwrap();
    assert_eq!(body["model"], "gpt-x");
}

const EVENTS: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";

#[tokio::test]
async fn an_exchange_names_key_version_and_deployment() {
    let account = Account {
        deployment: Some("prod".into()),
        api_version: Some("2026-01-01-preview".into()),
        ..Account::default()
    };
    let body = format!("{EVENTS}data: {{\"type\":\"response.completed\",\"response\":{{}}}}\n\n");
    let answer = answer("200 OK", "text/event-stream", &body);
    let (deltas, sent) = ask(AzureOpenAi, |url| request(&format!("{url}/openai/v1"), account), answer).await;
    assert!(deltas.contains(&Delta::Extend { index: 0, delta: "Hi".into() }), "{deltas:?}");
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(
        head.starts_with("post /openai/v1/responses?api-version=2026-01-01-preview http/1.1\r\n"),
        "{head}"
    );
    assert!(head.lines().any(|line| line == "api-key: hush"), "{head}");
    assert!(!head.contains("authorization:"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["model"], "prod");
}

#[tokio::test]
async fn refusals_are_told_by_what_they_mean() {
    let rows = [
        (
            "401 Unauthorized",
            r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key hush or wrong API endpoint."}}"#,
            FailureKind::Auth,
            "invalid subscription key [redacted]",
        ),
        (
            "404 Not Found",
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
            FailureKind::InvalidRequest,
            "DeploymentNotFound",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"429","message":"Requests have exceeded the token rate limit of your current pricing tier. Please retry after 7 seconds."}}"#,
            FailureKind::Retryable,
            "429: ",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            FailureKind::Fatal,
            "current quota",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"code":"content_filter","message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy."}}"#,
            FailureKind::ModelRefusal,
            "content management policy",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#,
            FailureKind::ContextOverflow,
            "context window",
        ),
        (
            "502 Bad Gateway",
            "<html><h2>Our services aren't available</h2></html>",
            FailureKind::Retryable,
            "502: <html>",
        ),
    ];
    for (status, body, kind, text) in rows {
        let (deltas, _) =
            ask(AzureOpenAi, |url| request(url, Account::default()), answer(status, "text/plain", body))
                .await;
        let failure = failure(&deltas);
        assert_eq!(failure.kind, kind, "{status} {failure}");
        assert!(failure.message.contains(text), "{status} {failure}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_short_may_be_asked_for_again() {
    let cut = answer("200 OK", "text/event-stream", EVENTS);
    let (deltas, _) = ask(AzureOpenAi, |url| request(url, Account::default()), cut).await;
    assert!(deltas.contains(&Delta::Extend { index: 0, delta: "Hi".into() }), "{deltas:?}");
    assert_eq!(failure(&deltas).kind, FailureKind::Retryable, "{deltas:?}");
}
