//! MCP servers that the editor passes in, and prompts of servers as commands of the editor.

use std::fs;

use agentd_e2e::{DEADLINE, Home, MockServer, Reply, Service, processes, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};
use crate::mcp::{SERVER, configure};

/// A session with these servers.
fn open(editor: &mut Editor, home: &Home, servers: &Value) -> String {
    let opened = editor.call("session/new", json!({"cwd": home.project(), "mcpServers": servers}));
    opened["sessionId"].as_str().expect("an id").to_owned()
}

fn program(name: &str, args: &[&str], secret: &str) -> Value {
    json!({"name": name, "command": SERVER, "args": args, "env": [{"name": "TEST_SECRET", "value": secret}]})
}

/// Has the model load a tool and call it; the content of the result that the model gets.
fn result_of(editor: &mut Editor, model: &MockServer, session: &str, tool: &str, arguments: Value) -> String {
    model.push(Reply::stream(sse::calls(&[("c1", "tool_search", json!({"query": tool}))])));
    model.push(Reply::stream(sse::calls(&[("c2", tool, arguments)])));
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(editor.turn(session, "Go."), "end_turn");
    let request = model.requests().last().expect("a request").clone();
    request.messages().last().expect("a message")["content"].to_string()
}

/// `roots/list` is answered with all folders of the workspace.
#[test]
fn further_folders_are_roots_of_servers() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let other = tempfile::tempdir().expect("a folder");
    let mut editor = Editor::ready(&home, &[], &able());
    let given = json!({
        "cwd": home.project(), "mcpServers": [program("mine", &[], "x")], "additionalDirectories": [other.path()],
    });
    let session = editor.call("session/new", given)["sessionId"].as_str().expect("an id").to_owned();
    let said = result_of(&mut editor, &model, &session, "mcp__mine__roots", json!({}));
    assert!(said.contains("/project") && said.contains(&*other.path().to_string_lossy()), "{said}");
}

#[test]
fn servers_of_the_editor_belong_to_their_session() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    // The editor's server counts before that of the file.
    configure(&home, json!({"my_server": {"command": "/no/such/program"}}));
    let mut editor = Editor::ready(&home, &[], &able());
    let session = open(
        &mut editor,
        &home,
        &json!([program("my server", &["--log", "calls.log"], "!${HOME}-hush-0123")]),
    );
    let arguments = json!({"name": "TEST_SECRET"});
    let said = result_of(&mut editor, &model, &session, "mcp__my_server__variable", arguments);
    assert!(said.contains("!${HOME}-hush-0123"), "values are taken as they are: {said}");
    // Another session does not have it.
    let other = open(&mut editor, &home, &json!([]));
    let said = result_of(&mut editor, &model, &other, "mcp__my_server__echo", json!({"text": "x"}));
    assert!(said.contains("not found") || said.contains("mcp__my_server__echo"), "{said}");
    assert_eq!(
        fs::read_to_string(home.project().join("calls.log")).expect("the log").matches("started").count(),
        1
    );
    let (_, _, status) = editor.close();
    assert!(status.success());
    // Nothing of it is in a file of agentd.
    let mut folders = vec![home.agent_dir()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "jsonl") {
                let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
                assert!(!text.contains("hush-0123"), "{}", path.display());
            }
        }
    }
}

#[test]
fn servers_go_to_a_session_of_the_daemon_and_end_with_it() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let service = Service::start(&home, &[]);
    let mut editor = Editor::ready(&home, &["--shared"], &able());
    let session = open(&mut editor, &home, &json!([program("files", &[], "x")]));
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    // Nothing has needed it yet.
    let there = client.done(json!({"type": "reconnect_mcp_server", "name": "files"}))["servers"].clone();
    assert_eq!(there[0]["state"], "connected");
    assert_eq!((&there[0]["name"], &there[0]["path"]), (&json!("files"), &json!("")));
    let pid = i32::try_from(there[0]["pid"].as_i64().expect("a process id")).expect("a process id");
    let watched = processes::watch(&[pid]);
    client.done(json!({"type": "close_session", "sessionId": session}));
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn what_cannot_be_connected_is_refused_with_the_reason() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut editor = Editor::ready(&home, &[], &able());
    let servers = json!([{"type": "sse", "name": "old", "url": "https://x.example/sse", "headers": []}]);
    let error = editor.refused("session/new", json!({"cwd": home.project(), "mcpServers": servers}));
    assert_eq!(error["code"], -32602);
    assert!(
        error["message"].as_str().is_some_and(|text| text.contains("\"old\"") && text.contains("sse")),
        "{error}"
    );
}

#[test]
fn prompts_of_servers_are_commands_of_the_editor() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut editor = Editor::ready(&home, &[], &able());
    let session = open(&mut editor, &home, &json!([program("test", &["--prompts"], "x")]));
    // The first search connects the server.
    result_of(&mut editor, &model, &session, "mcp__test__echo", json!({"text": "x"}));
    let review = loop {
        let updates = editor.updates("available_commands_update");
        let commands =
            updates.into_iter().filter_map(|update| update["availableCommands"].as_array()).flatten();
        let found = commands.into_iter().find(|command| command["name"] == "mcp__test__review").cloned();
        if let Some(found) = found {
            break found;
        }
        editor.next().expect("a message");
    };
    assert_eq!(
        (&review["description"], &review["input"]["hint"]),
        (&json!("Reviews a file."), &json!("<file> [focus]"))
    );
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(editor.turn(&session, "/mcp__test__review a.rs"), "end_turn");
    let request = model.requests().last().expect("a request").clone();
    assert!(request.messages().last().expect("a message").to_string().contains("Review with"));
}

#[test]
fn a_tool_has_the_title_and_the_kind_that_its_server_says() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": {"command": SERVER, "exposure": "direct"}}));
    let mut editor = Editor::ready(&home, &[], &able());
    let session = open(&mut editor, &home, &json!([]));
    let calls = [("c1", "mcp__test__echo", json!({"text": "x"})), ("c2", "mcp__test__remove", json!({}))];
    model.push(Reply::stream(sse::calls(&calls)));
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(editor.turn(&session, "Go."), "end_turn");
    let shown = |editor: &Editor, call: &str| {
        let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
        let of_call = updates.filter(|update| update["toolCallId"] == call);
        let last = |key: &str| of_call.clone().filter_map(|update| update.get(key)).next_back().cloned();
        (last("title").expect("a title"), last("kind").expect("a kind"))
    };
    assert_eq!(shown(&editor, "c1"), (json!("Say again (test)"), json!("read")));
    assert_eq!(shown(&editor, "c2"), (json!("mcp__test__remove"), json!("other")));
}
