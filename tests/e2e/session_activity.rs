//! `watch_sessions` with `activity`: what sessions do, for clients that follow none of them.

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

use crate::support::text;

/// A client that watches with activities, and the answer to that.
fn watch(service: &Service) -> (SocketClient, Value) {
    let mut watcher = service.client();
    watcher.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    let watched = watcher.done(json!({"type": "watch_sessions", "activity": true}));
    (watcher, watched)
}

fn activity(watcher: &mut SocketClient, state: &str) -> Value {
    watcher.until(state, |line| line["type"] == "session_activity" && line["state"] == state)
}

#[test]
fn a_watcher_hears_what_a_session_does() {
    let gate = Gate::new();
    let call = sse::calls(&[("c1", "bash", json!({"command": "echo begun; sleep 1000"}))]);
    let server = MockServer::start([
        Reply::stream(sse::text(&"word ".repeat(80))).gate(&gate).then(call),
        Reply::stream(sse::answer("Stopped.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();

    // The answer tells of what is there already.
    let (mut watcher, watched) = watch(&service);
    let idle = &watched["activities"][0];
    assert_eq!(
        (&idle["sessionId"], &idle["state"], &idle["tokens"]),
        (&id, &json!("idle"), &json!(0)),
        "{watched}"
    );
    assert_eq!((&idle["provider"], &idle["modelId"]), (&json!("fake"), &json!("fake")), "{watched}");

    client.send(&json!({"type": "prompt", "message": "Go."}));
    let answering = activity(&mut watcher, "answering");
    // 400 bytes of text that no provider has counted yet.
    assert_eq!(answering["answerTokens"], json!(100), "{answering}");
    assert!(answering["sinceMs"].as_i64().unwrap() > 0, "{answering}");
    // One that comes in the middle of the answer sees it, too.
    let (_late, watched) = watch(&service);
    assert_eq!(watched["activities"][0]["answerTokens"], json!(100), "{watched}");
    gate.open();
    client.until("its output", |line| text(&line["partialResult"]).contains("begun"));
    let running = activity(&mut watcher, "running");
    assert_eq!(running["running"][0]["tool"], "bash", "{running}");
    assert_eq!(running["running"][0]["subject"], "echo begun; sleep 1000", "{running}");
    assert!(running["tokens"].as_u64().unwrap() > 0 && running["answerTokens"].is_null(), "{running}");
    client.send(&json!({"type": "abort"}));
    let idle = activity(&mut watcher, "idle");
    assert!(idle["running"].is_null(), "{idle}");
}

#[test]
fn a_question_to_the_user_is_an_activity() {
    let call = sse::calls(&[("c1", "bash", json!({"command": "touch made"}))]);
    let server = MockServer::start([Reply::stream(call), Reply::stream(sse::answer("No."))]);
    let home = Home::with_model(&server);
    home.settings(&json!({"permissions": {"preset": "ask", "askTimeoutMs": 600_000}}));
    let service = Service::start(&home, &[]);
    let (mut watcher, watched) = watch(&service);
    assert_eq!(watched["activities"], json!([]));
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "ui": true, "permissions": true}}));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    activity(&mut watcher, "idle");
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let asked = client.event("extension_ui_request");
    let asking = activity(&mut watcher, "asking");
    assert_eq!(asking["running"][0]["subject"], "touch made", "{asking}");
    client.send(
        &json!({"type": "permission_response", "requestId": asked["id"], "decision": "deny", "sessionId": id}),
    );
    activity(&mut watcher, "idle");
}

/// Clients that did not ask for it get nothing of it.
#[test]
fn a_plain_watch_is_as_before() {
    let server = MockServer::start([Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut watcher, mut client) = (service.client(), service.client());
    let watched = watcher.done(json!({"type": "watch_sessions"}));
    assert!(watched["activities"].is_null(), "{watched}");
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("agent_settled");
    let lines = watcher.all_until("its end", |line| {
        line["type"] == "session_changed"
            && line["session"]["isStreaming"] == json!(false)
            && line["session"]["messageCount"] == json!(3)
    });
    assert!(lines.iter().all(|line| line["type"] != "session_activity"), "{lines:?}");
}
