//! The model's list of tasks as an editor's plan.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};
use crate::client_tools::offered;

#[test]
fn an_editor_gets_a_plan() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut editor = Editor::ready(&home, &[], &able());
    let session = editor.new_session(&home);
    model.push(Reply::stream(sse::calls(&[("c1", "todo", json!({"op": "init", "items": ["one", "two"]}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(editor.turn(&session, "Go."), "end_turn");
    assert!(offered(&model, 0).contains(&"todo".to_owned()), "active in editors");
    let entry =
        |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
    let planned = json!([entry("one", "in_progress"), entry("two", "pending")]);
    let plans: Vec<Value> = editor.updates("plan").into_iter().map(|plan| plan["entries"].clone()).collect();
    assert_eq!(plans, std::slice::from_ref(&planned));
    let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
    let of_call: Vec<&Value> = updates.filter(|update| update["toolCallId"] == "c1").collect();
    assert!(
        of_call.iter().any(|update| update["kind"] == "think" && update["title"] == "Todo init"),
        "{of_call:?}"
    );
    let (_, _, status) = editor.close();
    assert!(status.success());

    // Loading the thread shows it again.
    let mut again = Editor::ready(&home, &[], &able());
    again.call("session/load", json!({"sessionId": session, "cwd": home.project(), "mcpServers": []}));
    assert_eq!(again.update("plan")["entries"], planned);
    let (_, _, status) = again.close();
    assert!(status.success());

    // The setting turns it off.
    home.settings(&json!({"todo": {"enabled": false}}));
    let mut without = Editor::ready(&home, &[], &able());
    let session = without.new_session(&home);
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(without.turn(&session, "Go."), "end_turn");
    assert!(!offered(&model, model.requests().len() - 1).contains(&"todo".to_owned()));
}
