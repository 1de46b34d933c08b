//! Watching all sessions.

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, sse};
use serde_json::json;

#[test]
fn a_watcher_hears_of_sessions_that_it_does_not_follow() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("On it.")).gate(&gate).then(sse::answer(" Done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut watcher, mut client) = (service.client(), service.client());
    watcher.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    watcher.done(json!({"type": "watch_sessions"}));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let opened = watcher.event("session_opened");
    assert_eq!((&opened["session"]["id"], &opened["session"]["live"]), (&id, &json!(true)), "{opened}");
    client.done(json!({"type": "prompt", "message": "What is it?"}));
    let change = |what: &'static str, value: serde_json::Value| {
        move |line: &serde_json::Value| line["type"] == "session_changed" && line["session"][what] == value
    };
    let at_work = watcher.until("work", change("isStreaming", json!(true)));
    assert_eq!(at_work["session"]["clients"], json!(1), "{at_work}");
    gate.open();
    let idle = watcher.until("its end", change("isStreaming", json!(false)));
    assert_eq!(idle["session"]["firstMessage"], "What is it?", "{idle}");
    assert_eq!(idle["session"]["messageCount"], json!(3), "{idle}");
    client.done(json!({"type": "set_session_name", "name": "mine"}));
    watcher.until("its name", change("name", json!("mine")));
    drop(client);
    watcher.until("a client less", change("clients", json!(0)));

    watcher.done(json!({"type": "unwatch_sessions"}));
    let mut other = service.client();
    other.done(json!({"type": "attach_session", "sessionId": id}));
    // Nothing comes before this answer.
    watcher.send(&json!({"id": "last", "type": "daemon_status"}));
    assert_eq!(watcher.line()["id"], "last");
}

#[test]
fn who_follows_and_watches_is_told_of_the_end_once_after_the_last_event() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer("."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut both, mut closer) = (service.client(), service.client());
    both.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    both.done(json!({"type": "watch_sessions"}));
    let id = both.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    both.done(json!({"type": "prompt", "message": "Hi"}));
    closer.done(json!({"type": "close_session", "sessionId": id, "mode": "abort"}));
    let lines = both.all_until("the end", |line| line["type"] == "session_closed");
    assert!(lines.iter().any(|line| line["type"] == "agent_settled"), "the end of its run came before");
    both.send(&json!({"id": "last", "type": "daemon_status"}));
    let rest = both.all_until("an answer", |line| line["id"] == "last");
    assert!(rest.iter().all(|line| line["type"] != "session_closed"), "{rest:?}");
    gate.open();
}
