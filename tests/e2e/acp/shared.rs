//! `agentd acp --shared`: sessions of the user's daemon.

use std::sync::Arc;

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};
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

/// Another client of the service, which follows the session.
fn other(service: &Service, session: &str) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    client
}

/// The texts of the updates so far, in their order: `>` before those of users, `!` before the titles of calls.
fn told(editor: &Editor) -> String {
    let mut told = String::new();
    for message in &editor.seen {
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            Some("user_message_chunk") => told.push_str(&format!(">{text}|")),
            Some("agent_message_chunk") => told.push_str(text),
            Some("tool_call_update") if update["status"] == "completed" => told.push_str("!ran|"),
            _ => {}
        }
    }
    told
}

/// What another client prompts is told while it happens, and is the answer to nothing.
#[test]
fn the_work_of_others_is_shown_and_no_part_of_a_turn() {
    let server = MockServer::start([
        Reply::stream(sse::answer("For the editor.")),
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo theirs"}))])),
        Reply::stream(sse::answer("For the other.")),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    home.write_agent("prompts/look.md", "Look at all of it.");
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hi."), "end_turn");
    let mut client = other(&service, &session);
    client.send(&json!({"type": "prompt", "sessionId": session, "message": "Mine."}));
    client.event("agent_settled");
    client.done(json!({"type": "set_session_name", "sessionId": session, "name": "Ours"}));
    assert_eq!(editor.update("session_info_update")["title"], "Ours");
    assert_eq!(told(&editor), "For the editor.>Mine.|!ran|For the other.");
    let call = editor.updates("tool_call")[0].clone();
    assert_eq!((&call["toolCallId"], &call["kind"]), (&json!("call_1"), &json!("execute")));
    let ids: Vec<&str> = editor
        .updates("agent_message_chunk")
        .iter()
        .map(|chunk| chunk["messageId"].as_str().unwrap())
        .collect();
    assert_ne!(ids.first(), ids.last());
    // A template is another text than what was typed, and is the editor's own all the same.
    assert_eq!(editor.turn(&session, "/look"), "end_turn");
    assert_eq!(told(&editor), "For the editor.>Mine.|!ran|For the other.Again.");
}

#[test]
fn a_prompt_during_the_run_of_another_client_waits_and_has_its_own_answer() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Theirs")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::text("Ours") + &sse::end("length", (1, 0, 1))),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &json!({}));
    let session = editor.new_session(&home);
    let mut client = other(&service, &session);
    client.send(&json!({"type": "prompt", "sessionId": session, "message": "Mine."}));
    editor.update("agent_message_chunk");
    let id = editor.prompt(&session, "And mine.");
    client.until("the editor's prompt", |line| line["type"] == "queue_update");
    gate.open();
    assert_eq!(editor.reply(id)["result"]["stopReason"], "max_tokens");
    assert_eq!(told(&editor), ">Mine.|TheirsOurs");
}

#[test]
fn a_session_that_is_loaded_in_the_middle_of_a_run_shows_all_of_it() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo theirs"}))])),
        Reply::stream(sse::text("One, ")).gate(&gate).then(sse::text("two.") + &sse::end("stop", (1, 0, 1))),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut first = Editor::ready(&home, &["--shared"], &json!({}));
    let session = first.new_session(&home);
    first.prompt(&session, "Mine.");
    first.update("agent_message_chunk");
    let mut editor = Editor::ready(&home, &["--shared"], &json!({}));
    editor.call("session/load", json!({"sessionId": session, "cwd": home.project(), "mcpServers": []}));
    editor.until("the answer so far", |message| message.to_string().contains("One, "));
    gate.open();
    editor.until("its end", |message| message.to_string().contains("two."));
    assert_eq!(told(&editor), ">Mine.|!ran|One, two.");
    drop(service);
}

#[test]
fn an_answer_that_fails_for_another_client_is_a_notice() {
    let server = MockServer::start([Reply::status(
        400,
        "application/json",
        r#"{"error":{"message":"no such thing"}}"#,
    )]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &able());
    let session = editor.new_session(&home);
    let mut client = other(&service, &session);
    client.send(&json!({"type": "prompt", "sessionId": session, "message": "Mine."}));
    let notice = editor.update("notice");
    assert!(notice["description"].as_str().unwrap().contains("no such thing"), "{notice}");
}

/// An editor that does not read is cut off, told of the gap, and gets the answer to its prompt all the same.
#[test]
fn an_editor_that_falls_behind_is_told_and_its_turn_ends() {
    const DELTAS: usize = 80;
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("It begins. "))
            .gate(&gate)
            .then(sse::text(&"On. ".repeat(12_000)).repeat(DELTAS) + &sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"outboxBytes": 65536, "lagGraceMs": 300}}));
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &able());
    let session = editor.new_session(&home);
    let mut client = other(&service, &session);
    let id = editor.prompt(&session, "Write.");
    editor.update("agent_message_chunk");
    let reading = Arc::clone(&editor.reading);
    let held = reading.lock().unwrap();
    gate.open();
    client.event("agent_settled");
    drop(held);
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    let lost = |notice: &&Value| {
        notice["title"].as_str().is_some_and(|title| title.contains("updates of this session are lost"))
    };
    assert!(editor.updates("notice").iter().any(lost), "{:?}", editor.updates("notice"));
    assert!(editor.updates("agent_message_chunk").len() < DELTAS, "nothing was lost");
    assert_eq!(editor.turn(&session, "Once more."), "end_turn");
    assert!(editor.text().ends_with("Again."));
}

#[test]
fn a_question_that_another_client_answers_is_taken_back() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "touch made"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared", "--permissions", "ask"], &able());
    let session = editor.new_session(&home);
    let mut client = service.client();
    let capabilities = json!({"sessions": true, "ui": true, "permissions": true});
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": capabilities}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    let id = editor.prompt(&session, "Touch it.");
    let question = editor.question("session/request_permission");
    let asked = client.event("extension_ui_request");
    client.done(json!({"type": "permission_response", "sessionId": session, "requestId": asked["id"], "decision": "once"}));
    let taken_back = editor.until("$/cancel_request", |message| message["method"] == "$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // An answer that comes too late changes nothing.
    editor.choose(&question, "deny");
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(home.project().join("made").exists());
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
