//! `agentd acp --shared`: sessions of the user's daemon.

use agentd_e2e::{Home, MockServer, Reply, Service, ctl, sse};
use serde_json::{Value, json};

use super::editor::Editor;
use crate::support::OnDemand;

#[test]
fn a_shared_session_is_one_of_the_daemon_and_goes_on_without_the_editor() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Hello.")), Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hi."), "end_turn");
    assert_eq!(editor.text(), "Hello.");
    editor.prompt(&session, "Long work.");
    editor.until("the second answer", |message| message.to_string().contains("I begin"));
    let (_, took, status) = editor.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let state = client.done(json!({"type": "attach_session", "sessionId": session}));
    assert_eq!(state["state"]["isStreaming"], true, "the work goes on");
}

/// What another client does in the session is not told as the answer to anything.
#[test]
fn the_work_of_others_is_no_part_of_a_turn() {
    let server = MockServer::start([
        Reply::stream(sse::answer("For the editor.")),
        Reply::stream(sse::answer("For the other.")),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hi."), "end_turn");
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    client.send(&json!({"type": "prompt", "sessionId": session, "message": "Mine."}));
    client.event("agent_settled");
    client.done(json!({"type": "set_session_name", "sessionId": session, "name": "Ours"}));
    assert_eq!(editor.update("session_info_update")["title"], "Ours");
    assert_eq!(editor.turn(&session, "Go on."), "end_turn");
    assert_eq!(editor.text(), "For the editor.Again.");
}

#[test]
fn the_daemon_is_started_where_none_runs() {
    let home = Home::new();
    let _daemon = OnDemand(&home);
    let mut editor = Editor::ready(&home, &["--shared", "--demo"], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hi."), "end_turn");
    let said = ctl::run(&home, &["sessions", "--live", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(list["sessions"][0]["id"], session);
}
