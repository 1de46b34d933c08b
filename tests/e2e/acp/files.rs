//! The editor's files: what is typed and not saved is read, and changes go through the editor.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::Editor;

/// Runs one call with an editor whose buffers have `typed`; gives what it was asked for, and the last update of the call.
fn run(
    home: &Home,
    server: &MockServer,
    capabilities: &Value,
    call: (&str, Value),
    typed: &str,
) -> (Vec<Value>, Value) {
    server.push(Reply::stream(sse::calls(&[("call_1", call.0, call.1)])));
    server.push(Reply::stream(sse::answer("Done.")));
    let mut editor = Editor::ready(home, &[], &json!({"fs": capabilities}));
    let session = editor.new_session(home);
    let id = editor.prompt(&session, "Do it.");
    let mut asked = Vec::new();
    loop {
        let message = editor.next().unwrap();
        match message["method"].as_str() {
            Some("fs/read_text_file") => editor.answer(&message, json!({"content": typed})),
            Some("fs/write_text_file") => editor.answer(&message, json!({})),
            None if message["id"] == id => break,
            _ => continue,
        }
        asked.push(json!([message["method"], message["params"]["path"], message["params"]["content"]]));
    }
    (asked, editor.updates("tool_call_update").pop().unwrap().clone())
}

fn setting() -> (MockServer, Home) {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    home.write("a.txt", "saved\n");
    (server, home)
}

fn both() -> Value {
    json!({"readTextFile": true, "writeTextFile": true})
}

#[test]
fn what_is_typed_and_not_saved_is_read() {
    let (server, home) = setting();
    let path = home.project().join("a.txt");
    let (asked, last) = run(&home, &server, &both(), ("read", json!({"path": "a.txt"})), "typed\n");
    assert_eq!(asked, [json!(["fs/read_text_file", path, null])]);
    assert!(last.to_string().contains("typed") && !last.to_string().contains("saved"), "{last}");
}

#[test]
fn changes_are_made_by_the_editor() {
    let (server, home) = setting();
    let path = home.project().join("a.txt");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "typed", "newText": "changed"}]});
    let (asked, last) = run(&home, &server, &both(), ("edit", edit), "typed\n");
    assert_eq!(asked.last().unwrap(), &json!(["fs/write_text_file", path, "changed\n"]));
    assert_eq!(last["content"][0]["newText"], "changed\n");
    assert_eq!(home.read("a.txt"), "saved\n", "the editor saves it");
    let new = home.project().join("new.txt");
    let (asked, _) = run(&home, &server, &both(), ("write", json!({"path": "new.txt", "content": "x"})), "");
    assert_eq!(asked.last().unwrap(), &json!(["fs/write_text_file", new, "x"]));
}

#[test]
fn an_editor_that_does_only_one_of_both_is_not_asked_to_read() {
    for capabilities in [json!({"readTextFile": true}), json!({"writeTextFile": true})] {
        let (server, home) = setting();
        let (asked, last) = run(&home, &server, &capabilities, ("read", json!({"path": "a.txt"})), "typed\n");
        assert_eq!(asked, Vec::<Value>::new());
        assert!(last.to_string().contains("saved"), "{last}");
    }
}

#[test]
fn files_outside_of_the_folder_are_none_of_the_editors() {
    let (server, home) = setting();
    home.write_home("b.txt", "elsewhere\n");
    let (asked, last) = run(&home, &server, &both(), ("read", json!({"path": "~/b.txt"})), "typed\n");
    assert_eq!(asked, Vec::<Value>::new());
    assert!(last.to_string().contains("elsewhere"), "{last}");
}

#[test]
fn an_editor_that_refuses_a_change_fails_the_call() {
    let (server, home) = setting();
    server.push(Reply::stream(sse::calls(&[("call_1", "write", json!({"path": "a.txt", "content": "x"}))])));
    server.push(Reply::stream(sse::answer("Done.")));
    let mut editor = Editor::ready(&home, &[], &json!({"fs": both()}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Do it.");
    let question = editor.question("fs/write_text_file");
    let error =
        json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32603, "message": "read only"}});
    editor.line(&error.to_string());
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    let last = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(last["status"], "failed");
    assert!(last.to_string().contains("read only"), "{last}");
    assert_eq!(home.read("a.txt"), "saved\n");
}
