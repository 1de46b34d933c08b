//! Tool calls as editors see them.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::Editor;

/// Runs one call, and gives the updates about it.
fn run(home: &Home, server: &MockServer, tool: &str, arguments: Value) -> Vec<Value> {
    server.push(Reply::stream(sse::calls(&[("call_1", tool, arguments)])));
    server.push(Reply::stream(sse::answer("Done.")));
    let mut editor = Editor::ready(home, &[], &json!({}));
    let session = editor.new_session(home);
    assert_eq!(editor.turn(&session, "Do it."), "end_turn");
    let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
    updates.filter(|update| update["toolCallId"] == "call_1").cloned().collect()
}

fn setting() -> (MockServer, Home) {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    (server, home)
}

/// The path in the project, absolute.
fn path(home: &Home, name: &str) -> Value {
    json!(home.project().join(name))
}

#[test]
fn a_call_is_announced_explained_begun_and_ended() {
    let (server, home) = setting();
    let updates = run(&home, &server, "bash", json!({"command": "echo hi; exit 3"}));
    let first = &updates[0];
    assert_eq!((&first["sessionUpdate"], &first["status"]), (&json!("tool_call"), &json!("pending")));
    assert_eq!(
        (&first["kind"], &first["title"], &first["name"]),
        (&json!("execute"), &json!("bash"), &json!("bash"))
    );
    assert_eq!(updates[1]["title"], "echo hi; exit 3");
    assert_eq!(updates[1]["rawInput"], json!({"command": "echo hi; exit 3"}));
    assert!(updates.iter().any(|update| update["status"] == "in_progress"));
    let last = updates.last().unwrap();
    assert_eq!((&last["status"], &last["rawOutput"]["exit_code"]), (&json!("failed"), &json!(3)));
    assert!(last["content"][0]["content"]["text"].as_str().unwrap().starts_with("```\nhi\n"), "{last}");
}

#[test]
fn reading_names_the_place() {
    let (server, home) = setting();
    home.write("src/a.rs", "one\ntwo\n");
    let updates = run(&home, &server, "read", json!({"path": "src/a.rs", "offset": 2}));
    let explained = &updates[1];
    assert_eq!((&explained["kind"], &explained["title"]), (&json!("read"), &json!("Read src/a.rs (from 2)")));
    assert_eq!(explained["locations"], json!([{"path": path(&home, "src/a.rs"), "line": 2}]));
    assert_eq!(updates.last().unwrap()["status"], "completed");
}

#[test]
fn an_edit_is_a_diff_of_old_and_new_text() {
    let (server, home) = setting();
    home.write("a.txt", "one\ntwo\nthree\n");
    let edits = json!([{"oldText": "two", "newText": "zwei"}]);
    let updates = run(&home, &server, "edit", json!({"path": "a.txt", "edits": edits}));
    let last = updates.last().unwrap();
    let expected = json!([{
        "type": "diff", "path": path(&home, "a.txt"),
        "oldText": "one\ntwo\nthree\n", "newText": "one\nzwei\nthree\n",
    }]);
    assert_eq!(last["content"], expected);
    assert_eq!(last["locations"], json!([{"path": path(&home, "a.txt"), "line": 2}]));
}

#[test]
fn a_written_file_is_a_diff_too() {
    let (server, home) = setting();
    home.write("old.txt", "before\n");
    for (name, old) in [("new.txt", Value::Null), ("old.txt", json!("before\n"))] {
        let updates = run(&home, &server, "write", json!({"path": name, "content": "after\n"}));
        let expected =
            json!([{"type": "diff", "path": path(&home, name), "oldText": old, "newText": "after\n"}]);
        assert_eq!(updates.last().unwrap()["content"], expected, "{name}");
    }
}

#[test]
fn a_call_that_fails_shows_why() {
    let (server, home) = setting();
    let edits = json!([{"oldText": "x", "newText": "y"}]);
    let updates = run(&home, &server, "edit", json!({"path": "missing.txt", "edits": edits}));
    let last = updates.last().unwrap();
    assert_eq!(last["status"], "failed");
    assert!(last["content"][0]["content"]["text"].as_str().unwrap().contains("missing.txt"), "{last}");
}
