//! Questions to the user: permissions and dialogs.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};
use crate::asking::{calling, home};

fn asking(command: &str) -> (MockServer, Home) {
    let server = calling(command);
    let home = home(&server, &json!({"preset": "workspace"}));
    (server, home)
}

fn kinds(question: &Value) -> Vec<&str> {
    question["params"]["options"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

/// The end of the call.
fn ended(editor: &Editor) -> &Value {
    editor.updates("tool_call_update").pop().unwrap()
}

#[test]
fn a_call_is_asked_about_after_it_was_told() {
    let (_server, home) = asking("touch made");
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Make it.");
    let question = editor.question("session/request_permission");
    assert!(editor.updates("tool_call").iter().any(|call| call["toolCallId"] == "call_1"));
    let call = &question["params"]["toolCall"];
    assert_eq!((&call["toolCallId"], &call["title"]), (&json!("call_1"), &json!("touch made")));
    assert_eq!((&call["kind"], &call["rawInput"]), (&json!("execute"), &json!({"command": "touch made"})));
    assert_eq!(kinds(&question)[0], "allow_once");
    assert_eq!(kinds(&question).last(), Some(&"reject_once"));
    editor.choose(&question, "once");
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(home.project().join("made").exists());
    assert_eq!(ended(&editor)["status"], "completed");
}

#[test]
fn a_no_and_whatever_is_no_yes_keep_the_call_from_running() {
    for answer in [
        json!({"outcome": {"outcome": "selected", "optionId": "deny"}}),
        json!({"outcome": {"outcome": "selected", "optionId": "no such option"}}),
        json!({"outcome": {"outcome": "cancelled"}}),
        json!({}),
        json!(null),
    ] {
        let (_server, home) = asking("touch made");
        let mut editor = Editor::ready(&home, &[], &json!({}));
        let session = editor.new_session(&home);
        let id = editor.prompt(&session, "Make it.");
        let question = editor.question("session/request_permission");
        editor.answer(&question, answer.clone());
        assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn", "{answer}");
        assert!(!home.project().join("made").exists(), "{answer}");
        assert_eq!(ended(&editor)["status"], "failed");
    }
}

#[test]
fn an_editor_that_cannot_ask_is_a_no() {
    let (_server, home) = asking("touch made");
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Make it.");
    let question = editor.question("session/request_permission");
    editor.line(
        &json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
            .to_string(),
    );
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(!home.project().join("made").exists());
}

#[test]
fn always_means_the_rule_of_the_option_for_the_session() {
    let call =
        |id: &str, command: &str| Reply::stream(sse::calls(&[(id, "bash", json!({"command": command}))]));
    let server = MockServer::start([
        call("call_1", "touch one"),
        call("call_2", "touch two"),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({"preset": "workspace"}));
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Make them.");
    let question = editor.question("session/request_permission");
    editor.choose(&question, "session");
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(home.project().join("two").exists());
}

#[test]
fn a_change_is_shown_before_it_is_made() {
    let edits = json!([{"oldText": "old", "newText": "new"}]);
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "edit", json!({"path": "a.txt", "edits": edits}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({"preset": "ask"}));
    home.write("a.txt", "old\n");
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Change it.");
    let question = editor.question("session/request_permission");
    let diff = &question["params"]["toolCall"]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["oldText"], &diff["newText"]),
        (&json!("diff"), &json!("old\n"), &json!("new\n"))
    );
    assert_eq!(diff["path"], json!(home.project().join("a.txt")));
    editor.choose(&question, "once");
    editor.reply(id);
    assert_eq!(home.read("a.txt"), "new\n");
}

#[test]
fn a_cancel_ends_the_question_and_the_turn() {
    let (_server, home) = asking("touch made");
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Make it.");
    let question = editor.question("session/request_permission");
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.answer(&question, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
    assert!(!home.project().join("made").exists());
}

/// The daemon asks whether a project is trusted whose folder has settings of its own.
#[test]
fn dialogs_are_forms_or_choices_at_the_beginning_of_a_turn() {
    for (capabilities, method) in [(able(), "elicitation/create"), (json!({}), "session/request_permission")]
    {
        let server = MockServer::start([Reply::stream(sse::answer("Done."))]);
        let home = Home::with_model(&server);
        home.write(".agentd/settings.json", "{}");
        let mut editor = Editor::ready(&home, &[], &capabilities);
        let session = editor.new_session(&home);
        let id = editor.prompt(&session, "Hello.");
        let question = editor.question(method);
        if method == "elicitation/create" {
            let field = &question["params"]["requestedSchema"]["properties"]["answer"];
            let never =
                field["enum"].as_array().unwrap().iter().find(|it| it.as_str().unwrap().starts_with("Never"));
            editor.answer(&question, json!({"action": "accept", "content": {"answer": never}}));
        } else {
            editor.choose(&question, "2");
        }
        editor.until("the end of the turn", |message| message["id"] == id);
    }
}
