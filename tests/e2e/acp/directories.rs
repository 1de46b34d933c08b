//! Further folders of a session's workspace (`additionalDirectories`).

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::Editor;

/// A model that makes one call and then ends.
fn server(tool: &str, arguments: Value) -> MockServer {
    MockServer::start([
        Reply::stream(sse::calls(&[("call_1", tool, arguments)])),
        Reply::stream(sse::answer("Done.")),
    ])
}

/// Opens a session with further folders, and gives its id.
fn open(editor: &mut Editor, home: &Home, folders: &Value) -> String {
    let given = json!({"cwd": home.project(), "mcpServers": [], "additionalDirectories": folders});
    editor.call("session/new", given)["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_has_to_be_absolute_and_to_be_there() {
    let home = Home::new();
    let mut editor = Editor::start(&home, &["--demo"]);
    let capabilities = editor.initialize(&json!({}))["agentCapabilities"]["sessionCapabilities"].clone();
    assert_eq!(capabilities["additionalDirectories"], json!({}));
    home.write("file", "no folder");
    let file = home.project().join("file").display().to_string();
    for folder in ["other", "./other", "/no/such/folder", &file, "/"] {
        let given = json!({"cwd": home.project(), "mcpServers": [], "additionalDirectories": [folder]});
        let error = editor.refused("session/new", given);
        assert_eq!(error["code"], -32602, "{folder}: {error}");
        assert!(error["message"].as_str().unwrap().contains("additionalDirectories"), "{error}");
    }
    let id = open(&mut editor, &home, &json!([]));
    for method in ["session/load", "session/resume"] {
        let given =
            json!({"sessionId": id, "cwd": home.project(), "mcpServers": [], "additionalDirectories": ["x"]});
        assert_eq!(editor.refused(method, given)["code"], -32602, "{method}");
    }
}

/// The preset `workspace` writes there without a question, and asks about other folders; agents' and git's own files stay guarded.
#[test]
fn permissions_take_it_as_the_sessions_own_folder() {
    for (path, is_asked) in [("new.txt", false), (".git/hooks/x", true), ("../elsewhere.txt", true)] {
        let other = tempfile::tempdir().unwrap();
        let folder = other.path().canonicalize().unwrap().join("library");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join(path);
        let server = server("write", json!({"path": file, "content": "x"}));
        let home = Home::with_model(&server);
        let mut editor = Editor::ready(&home, &["--permissions", "workspace"], &json!({}));
        let session = open(&mut editor, &home, &json!([folder]));
        let id = editor.prompt(&session, "Write it.");
        if is_asked {
            let question = editor.question("session/request_permission");
            editor.choose(&question, "deny");
        }
        assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
        assert_eq!(file.exists(), !is_asked, "{path}");
        assert!(
            is_asked || !editor.seen.iter().any(|message| message["method"] == "session/request_permission")
        );
        let request = server.requests()[0].body.to_string();
        assert!(
            request.contains("additional_folders") && request.contains(&*folder.to_string_lossy()),
            "{request}"
        );
    }
}

#[test]
fn the_editor_is_asked_for_its_texts() {
    let other = tempfile::tempdir().unwrap();
    let folder = other.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "saved").unwrap();
    let server = server("read", json!({"path": folder.join("a.txt")}));
    let home = Home::with_model(&server);
    let fs = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    let mut editor = Editor::ready(&home, &[], &fs);
    let session = open(&mut editor, &home, &json!([folder]));
    let id = editor.prompt(&session, "Read it.");
    let asked = editor.question("fs/read_text_file");
    assert_eq!(asked["params"]["path"], json!(folder.join("a.txt")));
    editor.answer(&asked, json!({"content": "typed"}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(server.requests()[1].body.to_string().contains("typed"));
}

#[test]
fn a_sandbox_lets_commands_write_there() {
    let other = tempfile::tempdir().unwrap();
    let folder = other.path().canonicalize().unwrap();
    let file = folder.join("made");
    let server = server("bash", json!({"command": format!("touch {}", file.display())}));
    let home = Home::with_model(&server);
    home.settings(&json!({"sandbox": {"mode": "workspace-write", "required": false}}));
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = open(&mut editor, &home, &json!([folder]));
    assert_eq!(editor.turn(&session, "Touch it."), "end_turn");
    assert!(file.exists(), "{:?}", editor.updates("tool_call_update").last());
}

/// They last as long as the session is open, and are listed as long.
#[test]
fn they_belong_to_the_open_session() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let folders = json!([one.path(), two.path()]);
    let session = open(&mut editor, &home, &folders);
    assert_eq!(editor.turn(&session, "Hi."), "end_turn");
    let listed = |editor: &mut Editor| editor.call("session/list", json!({}))["sessions"][0].clone();
    assert_eq!(listed(&mut editor)["additionalDirectories"], folders);
    editor.call("session/close", json!({"sessionId": session}));
    assert_eq!(listed(&mut editor)["additionalDirectories"], Value::Null);
    let given = json!({"sessionId": session, "cwd": home.project(), "mcpServers": [], "additionalDirectories": [two.path()]});
    editor.call("session/resume", given);
    assert_eq!(listed(&mut editor)["additionalDirectories"], json!([two.path()]));
    assert_eq!(editor.turn(&session, "Again."), "end_turn");
    let request = server.requests()[1].body.to_string();
    let is_told = |folder: &tempfile::TempDir| request.contains(&*folder.path().to_string_lossy());
    assert!(is_told(&two) && !is_told(&one), "{request}");
}
