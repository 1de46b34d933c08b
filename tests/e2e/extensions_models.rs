//! Models for extensions: requests that they make, credentials, and the exchanges with providers that they see.

use agentd_e2e::{Home, MockServer, Reply, conversation::Conversation, conversation::LineTransport, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{events, extension, started, told},
    support::{assert_says, ended, kinds, text},
};

/// The model of the server, as extensions have it.
fn fake(server: &MockServer) -> Value {
    json!({"id": "fake", "provider": "fake", "api": "openai-completions", "baseUrl": server.base_url()})
}

/// Runs a command of the extension to its end.
fn run<W: LineTransport>(daemon: &mut Conversation<W>, command: &str) -> Vec<Value> {
    daemon.send(&json!({"id": "run", "type": "prompt", "message": command}));
    daemon.all_until("the answer", |line| line["type"] == "response" && line["id"] == "run")
}

fn question(words: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words, "timestamp": 1}], "systemPrompt": "Be brief."})
}

#[test]
fn a_model_answers_an_extension() {
    let server = MockServer::start([]);
    let call = json!({
        "model": fake(&server), "context": question("What?"), "simple": true,
        "options": {"maxTokens": 77, "temperature": 0.5, "headers": {"x-own": "yes"}, "apiKey": "sk-own"},
    });
    let script = json!({"commands": {"ask": {"calls": [["model.stream", call]]}}});
    let (home, mut daemon) = started(&server, &script);
    server.push(Reply::stream(sse::answer("That.")));
    run(&mut daemon, "/ask");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer sk-own"));
    assert_eq!(request.header("x-own"), Some("yes"));
    assert_eq!(request.body["temperature"], 0.5);
    assert_says(&request.body.to_string(), &["Be brief.", "What?", "77"]);
    let events: Vec<Value> =
        told(&home, "call.event").into_iter().map(|note| note["event"].clone()).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds.last()), ("start", Some(&"text_end")), "{kinds:?}");
    assert!(events[0].get("message").is_some() && kinds.contains(&"text_delta"), "{events:?}");
    let answer = &told(&home, "result")[0]["value"];
    assert_eq!((text(answer), &answer["stopReason"]), ("That.".to_owned(), &json!("stop")));
    assert!(answer["usage"]["totalTokens"].as_u64() > Some(0), "{answer}");
}

#[test]
fn a_request_of_an_extension_that_is_given_up_is_aborted() {
    let server = MockServer::start([]);
    let call = json!({"model": fake(&server), "context": question("What?")});
    let script = json!({"commands": {"ask": {"cancelled_calls": [["model.stream", call]]}}});
    let (home, mut daemon) = started(&server, &script);
    server.push(Reply::silence());
    run(&mut daemon, "/ask");
    let answer = &told(&home, "result")[0]["value"];
    assert_eq!(answer["stopReason"], "aborted", "{answer}");
}

#[test]
fn requests_of_extensions_count_in_the_budget_of_the_session() {
    let server = MockServer::start([]);
    let call = json!({"model": fake(&server), "context": question("What?")});
    let script = json!({"commands": {"ask": {"calls": [["model.stream", call]]}}});
    let home = Home::with_model(&server);
    extension(&home, "test", &script);
    home.settings(&json!({"budgets": {"session": {"tokens": 5800}}}));
    let mut daemon = agentd_e2e::Daemon::start(&home, &["--stdio"]);
    let words = sse::text("That.") + &sse::end("stop", (5000, 0, 700));
    server.push(Reply::stream(words));
    run(&mut daemon, "/ask");
    run(&mut daemon, "/ask");
    assert_eq!(server.requests().len(), 1);
    let results = told(&home, "result");
    assert_eq!(results[0]["value"]["stopReason"], "stop", "{results:?}");
    let refused = &results[1]["value"];
    assert_eq!((&refused["stopReason"], &refused["code"]), (&json!("error"), &json!("limit_reached")));
    let failure = daemon.refused(json!({"type": "prompt", "message": "Go."}));
    assert_eq!(failure["code"], "limit_reached");
}

#[test]
fn credentials_and_their_sources_are_told() {
    let server = MockServer::start([]);
    let script = json!({"commands": {"look": {"calls": [
        ["model.auth", {"provider": "fake", "id": "fake"}],
        ["model.auth", {"provider": "keyless", "id": "m"}],
        ["read", {"topic": "models"}],
        ["model.refresh", {}],
    ]}}});
    let home = Home::new();
    home.configure(&json!({"providers": {
        "fake": {"baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "sk-hush", "name": "The Fake",
            "headers": {"x-team": "blue"}, "models": [{"id": "fake"}]},
    }}));
    extension(&home, "test", &script);
    let mut daemon = agentd_e2e::Daemon::start(&home, &["--stdio"]);
    let seen = run(&mut daemon, "/look");
    assert!(!json!(seen).to_string().contains("sk-hush"));
    let results = told(&home, "result");
    assert_eq!(results[0]["value"], json!({"ok": true, "apiKey": "sk-hush", "headers": {"x-team": "blue"}}));
    assert_eq!(results[1]["value"], json!({"ok": true}));
    let provider = &results[2]["value"]["value"]["providers"]["fake"];
    let expected = json!({
        "name": "The Fake", "configured": true, "oauth": false, "source": "models_json_key",
        "baseUrl": server.base_url(),
    });
    assert_eq!(provider, &expected);
    assert_eq!(results[3]["value"], json!({"aborted": false, "errors": {}}));
}

#[test]
fn the_exchange_with_a_provider_is_seen_and_changed() {
    let server = MockServer::start([]);
    let script = json!({"handlers": {
        "context_with_system": {},
        "before_provider_headers": {"event": {"headers": {"x-added": "here"}}},
        "before_provider_request": {"value": {"model": "fake", "stream": true, "messages": [], "own": 1}},
        "after_provider_response": {},
        "provider_stream_event": {},
        "message_start": {},
    }});
    let (home, mut daemon) = started(&server, &script);
    server.push(Reply::stream(sse::answer("Ok.")).header("x-quota", "9"));
    let seen = daemon.prompt("Go.");
    assert_eq!(text(ended(&seen, "assistant")[0]), "Ok.");
    let request = &server.requests()[0];
    assert_eq!(request.header("x-added"), Some("here"));
    assert_eq!(request.body, json!({"model": "fake", "stream": true, "messages": [], "own": 1}));
    let events = events(&home);
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).expect("the event");
    assert_says(&of("before_provider_request")["payload"].to_string(), &["Go."]);
    let response = of("after_provider_response");
    assert_eq!((&response["status"], &response["headers"]["x-quota"]), (&json!(200), &json!("9")));
    let streamed = of("provider_stream_event");
    assert_eq!((&streamed["api"], &streamed["model"]), (&json!("openai-completions"), &json!("fake")));
    assert!(streamed["data"]["choices"].is_array(), "{streamed}");
    let order: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let at = order.iter().position(|kind| *kind == "context_with_system").expect("the event");
    let expected = [
        "context_with_system",
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "provider_stream_event",
    ];
    let mut after: Vec<&str> = order[at..].to_vec();
    after.retain(|kind| *kind != "message_start");
    after.dedup();
    assert_eq!(after, expected);
}

#[test]
fn a_handler_that_fails_leaves_the_request_as_it_is() {
    let server = MockServer::start([]);
    let script = json!({"handlers": {"before_provider_request": {"throw": "no idea"}}});
    let (_home, mut daemon) = started(&server, &script);
    server.push(Reply::stream(sse::answer("Ok.")));
    let seen = daemon.prompt("Go.");
    assert!(kinds(&seen).contains(&"extension_error"), "{:?}", kinds(&seen));
    assert_says(&server.requests()[0].body.to_string(), &["Go."]);
}
