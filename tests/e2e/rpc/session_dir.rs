//! `open_session` with the folder of session files, as omp's clients send it.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::complaint;

#[test]
fn the_newest_session_of_a_folder_goes_on_or_a_new_one_begins() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready", "--thinking", "off", "--name", "First"]);
    let first = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    let folder = home.root().join("talks");
    let open = json!({"type": "open_session", "sessionDir": folder});
    let opened = daemon.done(open.clone());
    assert_eq!((&opened["cancelled"], &opened["resumed"]), (&json!(false), &json!(false)));
    assert_ne!(opened["sessionId"], first);
    let file = opened["sessionFile"].as_str().expect("a file");
    assert!(file.starts_with(&folder.display().to_string()), "{file}");
    // The connection goes on there.
    daemon.prompt("Hi.");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["sessionId"], opened["sessionId"]);
    // The same again is where it is.
    let again = daemon.done(open);
    assert_eq!((&again["resumed"], &again["sessionId"]), (&json!(true), &opened["sessionId"]));
    // From elsewhere, the path is relative to the session's folder.
    let mut other = Daemon::start(&home, &["--ready"]);
    assert!(daemon.close().status.success());
    let resumed = other.done(json!({"type": "open_session", "sessionDir": "../talks"}));
    assert_eq!((&resumed["resumed"], &resumed["sessionId"]), (&json!(true), &opened["sessionId"]));
    assert_eq!(resumed["messageCount"], 3);
}

#[test]
fn work_of_the_session_that_is_left_is_stopped() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate)]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    daemon.send(&json!({"id": "o", "type": "open_session", "sessionDir": home.root().join("talks")}));
    let lines = daemon.all_until("the other session", |line| line["id"] == "o");
    let of = |kind: &str| lines.iter().find(|line| line["type"] == kind).cloned().unwrap_or(Value::Null);
    assert_eq!(of("prompt_result")["status"], "aborted");
    assert_eq!(of("agent_settled")["aborted"], true);
}

#[test]
fn a_folder_alone_needs_a_session_to_go_on_from() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "open_session", "sessionDir": "talks"}));
    assert_eq!(refused["error"], "open_session requires session persistence (omit --no-session)");
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let refused = client.refused(json!({"type": "open_session", "sessionDir": "talks"}));
    assert_eq!(
        (&refused["code"], complaint(&refused).as_str()),
        (&json!("invalid_field"), "Missing field \"cwd\"")
    );
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "sessionDir": "talks"}));
    let folder = home.project().join("talks").display().to_string();
    assert!(opened["sessionFile"].as_str().is_some_and(|file| file.starts_with(&folder)), "{opened}");
}
