//! Plan mode as a mode of an editor.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};

#[test]
fn plan_is_a_mode_that_a_plan_ends() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut editor = Editor::ready(&home, &[], &able());
    let opened = editor.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let modes = opened["modes"]["availableModes"].as_array().unwrap();
    assert!(modes.iter().any(|mode| mode["id"] == "plan"), "{modes:?}");
    assert_eq!(opened["modes"]["currentModeId"], "full");
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    model.push(Reply::stream(sse::calls(&[("b", "bash", json!({"command": "touch made"}))])));
    model.push(Reply::stream(sse::answer("Refused.")));
    assert_eq!(editor.turn(&session, "Make it."), "end_turn");
    assert!(!home.project().join("made").exists());

    // Another mode ends it; the options say the same.
    let set = |value: &str| json!({"sessionId": session, "configId": "mode", "value": value});
    let current = |changed: &Value| changed["configOptions"][0]["currentValue"].clone();
    assert_eq!(current(&editor.call("session/set_config_option", set("read-only"))), "read-only");
    assert_eq!(current(&editor.call("session/set_config_option", set("plan"))), "plan");
    assert_eq!(current(&editor.call("session/set_config_option", set("full"))), "full");
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    assert_eq!(editor.updates("current_mode_update").len(), 0, "what the editor asked for is not repeated");
}

#[test]
fn an_editor_approves_a_plan() {
    for (capabilities, method) in [(able(), "elicitation/create"), (json!({}), "session/request_permission")]
    {
        let model = MockServer::start([]);
        let home = Home::with_model(&model);
        let mut editor = Editor::ready(&home, &[], &capabilities);
        let session = editor.new_session(&home);
        editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
        let plan = json!({"path": "local://go-plan.md", "content": "1. touch made\n"});
        model.push(Reply::stream(sse::calls(&[("w", "write", plan)])));
        model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
        model.push(Reply::stream(sse::calls(&[("b", "bash", json!({"command": "touch made"}))])));
        model.push(Reply::stream(sse::answer("Made.")));
        let id = editor.prompt(&session, "Make it.");
        let question = editor.question(method);
        if method == "elicitation/create" {
            editor.answer(&question, json!({"action": "accept", "content": {"answer": "Approve"}}));
        } else {
            editor.choose(&question, "0");
        }
        assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
        assert!(home.project().join("made").exists());
        let modes = editor.updates("current_mode_update");
        assert_eq!(modes.len(), 1);
        assert_eq!(modes[0]["currentModeId"], "full");
        let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
        let of_call: Vec<&Value> = updates.filter(|update| update["toolCallId"] == "p").collect();
        assert!(of_call.iter().any(|update| update["kind"] == "switch_mode"), "{of_call:?}");
        assert!(of_call.iter().any(|update| update.to_string().contains("1. touch made")), "{of_call:?}");
    }
}
