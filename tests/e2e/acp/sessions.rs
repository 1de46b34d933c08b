//! Sessions: stored ones are listed, loaded with their history, resumed without it, closed and deleted.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};

/// A home with a stored session, and its id.
fn stored() -> (MockServer, Home, String) {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo hi"}))])),
        Reply::stream(sse::answer("It says hi.")),
    ]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Say hi."), "end_turn");
    editor.close();
    (server, home, session)
}

fn named(home: &Home, session: &str) -> Value {
    json!({"sessionId": session, "cwd": home.project(), "mcpServers": []})
}

#[test]
fn a_loaded_session_is_told_before_the_answer_and_goes_on() {
    let (server, home, session) = stored();
    let mut editor = Editor::ready(&home, &[], &able());
    let listed = editor.call("session/list", json!({"cwd": home.project()}));
    let first = &listed["sessions"][0];
    assert_eq!((&first["sessionId"], &first["title"]), (&json!(session), &json!("Say hi.")));
    assert_eq!(first["cwd"], json!(home.project()));
    assert!(first["updatedAt"].as_str().unwrap().ends_with('Z'));
    let before = editor.seen.len();
    editor.call("session/load", named(&home, &session));
    let told: Vec<&str> = editor.seen[before..]
        .iter()
        .filter_map(|message| message["params"]["update"]["sessionUpdate"].as_str())
        .collect();
    assert_eq!(told, ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]);
    assert_eq!(editor.updates("user_message_chunk")[0]["content"]["text"], "Say hi.");
    let call = editor.updates("tool_call_update")[0];
    assert_eq!((&call["status"], &call["toolCallId"]), (&json!("completed"), &json!("call_1")));
    editor.update("available_commands_update");
    server.push(Reply::stream(sse::answer("Still here.")));
    assert_eq!(editor.turn(&session, "And now?"), "end_turn");
    let sent = server.requests().last().unwrap().messages().to_vec();
    assert!(json!(sent).to_string().contains("It says hi."), "the model has the history");
}

#[test]
fn a_resumed_session_is_not_told_again() {
    let (server, home, session) = stored();
    let mut editor = Editor::ready(&home, &[], &json!({}));
    editor.call("session/resume", named(&home, &session));
    assert!(editor.updates("user_message_chunk").is_empty());
    server.push(Reply::stream(sse::answer("Yes.")));
    assert_eq!(editor.turn(&session, "Go on."), "end_turn");
    // What is open already can be loaded as well.
    editor.call("session/load", named(&home, &session));
    assert_eq!(editor.updates("user_message_chunk").len(), 2);
}

#[test]
fn sessions_that_are_not_there_are_refused() {
    let (_server, home, session) = stored();
    let mut editor = Editor::ready(&home, &[], &json!({}));
    for name in ["no-such", "", "../x", &session[..8]] {
        for method in ["session/load", "session/resume"] {
            let error = editor.refused(method, named(&home, name));
            assert_eq!(error["code"], -32002, "{method} {name}: {error}");
        }
    }
    for (method, params) in [
        ("session/close", json!({"sessionId": session})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "ask"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "ask"})),
    ] {
        assert_eq!(editor.refused(method, params)["code"], -32002, "{method}");
    }
}

#[test]
fn closing_cancels_and_frees_the_session() {
    let server = MockServer::start([Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "a");
    editor.update("agent_message_chunk");
    let closing = editor.ask("session/close", json!({"sessionId": session}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.reply(closing)["result"], json!({}));
    let gone = json!({"sessionId": session, "prompt": [{"type": "text", "text": "a"}]});
    assert_eq!(editor.refused("session/prompt", gone)["code"], -32002);
    editor.call("session/load", named(&home, &session));
    assert_eq!(editor.updates("user_message_chunk").len(), 1);
}

#[test]
fn a_deleted_session_is_gone_whether_it_was_open_or_not() {
    for opens in [true, false] {
        let (_server, home, session) = stored();
        let mut editor = Editor::ready(&home, &[], &json!({}));
        if opens {
            editor.call("session/resume", named(&home, &session));
        }
        editor.call("session/delete", json!({"sessionId": session}));
        assert_eq!(editor.call("session/list", json!({}))["sessions"], json!([]));
        assert_eq!(editor.refused("session/load", named(&home, &session))["code"], -32002);
        // Deleting it again changes nothing.
        editor.call("session/delete", json!({"sessionId": session}));
    }
}

#[test]
fn a_fork_has_the_history_and_an_id_of_its_own() {
    let (server, home, session) = stored();
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let forked = editor.call("session/fork", named(&home, &session));
    let fork = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(fork, session);
    server.push(Reply::stream(sse::answer("Yes.")));
    assert_eq!(editor.turn(&fork, "Go on."), "end_turn");
    let sent = server.requests().last().unwrap().messages().to_vec();
    assert!(json!(sent).to_string().contains("It says hi."));
}

#[test]
fn the_list_comes_in_pages() {
    let (_server, home, _) = stored();
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let error = editor.refused("session/list", json!({"cursor": "no cursor"}));
    assert_eq!(error["code"], -32602, "{error}");
    let none = editor.call("session/list", json!({"cwd": "/no/such/folder"}));
    assert_eq!(none, json!({"sessions": []}));
}
