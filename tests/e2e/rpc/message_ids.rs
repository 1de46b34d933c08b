//! The ids that the events of a message share.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

/// The ids of the events about messages, by their type, without repetitions.
fn ids(lines: &[Value]) -> Vec<(&str, &str)> {
    let about =
        lines.iter().filter(|line| line["type"].as_str().is_some_and(|kind| kind.starts_with("message_")));
    let mut ids: Vec<(&str, &str)> = about
        .map(|line| (line["type"].as_str().expect("a type"), line["messageId"].as_str().expect("an id")))
        .collect();
    ids.dedup();
    ids
}

#[test]
fn the_events_of_a_message_share_an_id_and_plain_clients_see_none() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello there.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    let lines = daemon.prompt("Hi.");
    let ids = ids(&lines);
    let of =
        |kind: &str| -> Vec<&str> { ids.iter().filter(|(it, _)| *it == kind).map(|(_, id)| *id).collect() };
    // System prompt, prompt and answer.
    assert_eq!(of("message_start").len(), 3);
    assert_eq!(of("message_start"), of("message_end"));
    assert_eq!(of("message_update"), of("message_start")[2..]);
    assert!(of("message_start").iter().collect::<std::collections::HashSet<_>>().len() == 3, "{ids:?}");
    let mut plain = Daemon::start(&home, &[]);
    assert!(plain.prompt("Hi.").iter().all(|line| line.get("messageId").is_none()));
}

/// As omp's Python client starts it.
#[test]
fn omps_python_client_sees_no_system_messages() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello there.")));
    let home = Home::with_model(&server);
    let mut daemon =
        Daemon::start(&home, &["--mode", "rpc", "--no-title", "--ready", "--cumulative-updates"]);
    let lines = daemon.prompt("Hi.");
    let roles: Vec<&Value> = lines.iter().map(|line| &line["message"]["role"]).collect();
    assert!(roles.contains(&&json!("user")) && !roles.contains(&&json!("system")), "{roles:?}");
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let roles: Vec<&Value> =
        messages.as_array().expect("messages").iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert!(lines.iter().any(|line| line["type"] == "prompt_result"), "the end of its prompt");
}

#[test]
fn a_client_that_joins_an_answer_is_told_its_id() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Hm."))
        .gate(&gate)
        .then(sse::text("So."))
        .then(sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let hello =
        json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "messageIds": true}});
    let (mut one, mut other) = (service.client(), service.client());
    one.done(hello.clone());
    other.done(hello);
    let session = one.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    one.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let update = one.event("message_update");
    let joined = other.done(json!({"type": "attach_session", "sessionId": session}));
    assert_eq!(joined["inFlight"]["messageId"], update["messageId"]);
    gate.open();
    let end = other.until("the answer", |line| line["type"] == "message_end");
    assert_eq!(end["messageId"], update["messageId"]);
    assert_eq!(
        one.until("the answer", |line| line["type"] == "message_end"
            && line["message"]["role"] == "assistant")["messageId"],
        update["messageId"]
    );
}
