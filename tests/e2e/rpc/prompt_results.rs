//! How prompts end, for clients that want to hear of it.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{extensions::extension, support::kinds};

/// Waits for the end of the prompt of that id.
fn result(daemon: &mut Daemon, id: &str) -> Value {
    daemon.until("the end of the prompt", |line| line["type"] == "prompt_result" && line["id"] == id)
}

fn held(gate: &Gate) -> Reply {
    Reply::stream(sse::text("Hm.")).gate(gate).then(sse::end("stop", (1, 0, 1)))
}

#[test]
fn a_prompt_ends_once_and_then_the_session_has_settled() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p1", "type": "prompt", "message": "Hi."}));
    let lines = daemon.all_until("the end", |line| line["type"] == "session_settled");
    let answer = lines.iter().find(|line| line["type"] == "response").expect("an answer");
    assert_eq!(answer["data"], json!({"disposition": "started", "agentInvoked": true}));
    let kinds = kinds(&lines);
    assert_eq!(kinds[kinds.len() - 4..], ["agent_end", "prompt_result", "agent_settled", "session_settled"]);
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "prompt_result").collect();
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        results,
        [&json!({
            "type": "prompt_result", "id": "p1", "agentInvoked": true, "status": "completed", "sessionSettled": true,
            "sessionId": state["sessionId"],
        })]
    );
    assert_eq!(
        (&state["isSettled"], &state["hasPendingAsyncWork"], &state["queuedMessageCount"]),
        (&json!(true), &json!(false), &json!(0))
    );
    // As in pi, where it was not asked for.
    let mut plain = Daemon::start(&home, &[]);
    let lines = plain.prompt("Hi.");
    assert!(!crate::support::kinds(&lines).contains(&"prompt_result"));
    let state = plain.done(json!({"type": "get_state"}));
    assert!(state.get("isSettled").is_none() && state.get("queuedMessageCount").is_none(), "{state}");
}

#[test]
fn a_queued_prompt_ends_with_the_run_that_delivers_it() {
    let gate = Gate::new();
    let server = MockServer::start([held(&gate), Reply::stream(sse::answer("And then."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p1", "type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    let queued = daemon.done(json!({"type": "prompt", "message": "And?", "streamingBehavior": "followUp"}));
    assert_eq!(queued, json!({"disposition": "queued", "agentInvoked": true}));
    daemon.send(
        &json!({"id": "p3", "type": "prompt", "message": "Not this.", "streamingBehavior": "followUp"}),
    );
    daemon.until("the answer", |line| line["id"] == "p3");
    // Stopped, with both messages waiting.
    daemon.done(json!({"type": "abort"}));
    let stopped = result(&mut daemon, "p1");
    assert_eq!((&stopped["status"], &stopped["sessionSettled"]), (&json!("aborted"), &json!(false)));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["isSettled"], &state["queuedMessageCount"]), (&json!(false), &json!(2)));
    daemon.done(json!({"type": "clear_queue"}));
    let ends: Vec<Value> = (0..2).map(|_| daemon.event("prompt_result")).collect();
    assert!(ends.iter().all(|end| end["status"] == "aborted" && end["sessionSettled"] == true), "{ends:?}");
    assert_eq!(ends[1]["id"], "p3");
}

#[test]
fn a_steered_prompt_and_the_first_end_together() {
    let gate = Gate::new();
    let server = MockServer::start([held(&gate), Reply::stream(sse::answer("And then."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p1", "type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    daemon.send(&json!({"id": "p2", "type": "prompt", "message": "And?", "streamingBehavior": "steer"}));
    daemon.until("the answer", |line| line["id"] == "p2");
    gate.open();
    let lines = daemon.all_until("the end", |line| line["type"] == "session_settled");
    let ends: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["type"] == "prompt_result")
        .map(|line| (&line["id"], &line["status"]))
        .collect();
    assert_eq!(ends, [(&json!("p1"), &json!("completed")), (&json!("p2"), &json!("completed"))]);
}

#[test]
fn an_error_says_of_what_kind_it_is() {
    let server =
        MockServer::start([Reply::status(529, "application/json", r#"{"error":{"message":"Overloaded"}}"#)]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"enabled": false, "provider": {"maxRetries": 0}}}));
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p1", "type": "prompt", "message": "Hi."}));
    let end = result(&mut daemon, "p1");
    assert_eq!(end["status"], "error");
    let error = &end["error"];
    assert_eq!(
        (&error["httpStatus"], &error["retryable"], &error["provider"], &error["model"]),
        (&json!(529), &json!(true), &json!("fake"), &json!("fake"))
    );
    assert!(error["message"].as_str().is_some_and(|text| text.contains("Overloaded")), "{error}");
    assert_eq!(daemon.event("agent_settled")["aborted"], false);
}

#[test]
fn what_no_model_is_asked_for_ends_with_its_answer() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    extension(&home, "test", &json!({"commands": {"ping": {}}}));
    let mut daemon = Daemon::start(&home, &["--ready"]);
    let handled = daemon.done(json!({"type": "prompt", "message": "/ping"}));
    assert_eq!(handled, json!({"disposition": "handled", "agentInvoked": false}));
    daemon.send(&json!({"id": "bad", "type": "prompt", "message": ""}));
    daemon.send(&json!({"id": "s", "type": "get_state"}));
    let lines = daemon.all_until("the state", |line| line["id"] == "s");
    assert!(!kinds(&lines[..1]).contains(&"prompt_result"), "{lines:?}");
}

#[test]
fn who_leaves_a_session_hears_how_its_prompt_ended() {
    let gate = Gate::new();
    let server = MockServer::start([held(&gate), Reply::stream(sse::answer("Here."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p1", "type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    daemon.send(&json!({"id": "n", "type": "new_session"}));
    let lines = daemon.all_until("the new session", |line| line["id"] == "n");
    let end = lines.iter().find(|line| line["type"] == "prompt_result").expect("the end of the prompt");
    assert_eq!((&end["id"], &end["status"]), (&json!("p1"), &json!("aborted")));
    daemon.send(&json!({"id": "p2", "type": "prompt", "message": "Go."}));
    assert_eq!(result(&mut daemon, "p2")["status"], "completed");
}

/// A client of the socket asks for it by its `hello`; others of the same session do not hear of it.
#[test]
fn the_end_of_a_prompt_is_told_to_its_client_alone_wherever_it_listens() {
    let gate = Gate::new();
    let server = MockServer::start([held(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut one, mut other) = (service.client(), service.client());
    let hello = |capabilities: Value| json!({"type": "hello", "protocol": 1, "capabilities": capabilities});
    let said = one.call(hello(json!({"sessions": true, "promptResult": true})));
    assert!(said["data"]["capabilities"].as_array().expect("a list").contains(&json!("promptResult")));
    other.done(hello(json!({"sessions": true})));
    let session = one.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    other.done(json!({"type": "attach_session", "sessionId": session}));
    one.send(&json!({"id": "p1", "type": "prompt", "message": "Go."}));
    one.event("message_update");
    // A new subscription of the same connection.
    one.done(json!({"type": "attach_session", "sessionId": session}));
    gate.open();
    let end = one.event("prompt_result");
    assert_eq!((&end["id"], &end["sessionId"], &end["seq"]), (&json!("p1"), &session, &Value::Null));
    let settled = one.event("session_settled");
    assert_eq!((&settled["sessionId"], &settled["seq"]), (&session, &Value::Null));
    let lines = other.settled();
    assert!(!kinds(&lines).iter().any(|kind| ["prompt_result", "session_settled"].contains(kind)));
    other.done(json!({"type": "get_state"}));
}
