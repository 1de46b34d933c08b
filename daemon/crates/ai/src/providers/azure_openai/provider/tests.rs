use std::sync::Arc;

use agentd_protocol::{Json, message::Message, model::Model};
use serde_json::{Value, json};

use super::*;
use crate::{Account, CacheRetention, Credentials, Secret};

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
