//! Questions about calls for clients that said `permissions` in `hello`: with all that is known, answered by a command.

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

use crate::{
    asking::{answer, asked, calling, calls, decisions, home, open, result_of, stored},
    client_tools,
    support::assert_says,
};

/// A client that knows questions about calls.
fn knowing(service: &Service, name: &str) -> SocketClient {
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": name},
        "capabilities": {"sessions": true, "permissions": true},
    }));
    client
}

fn attach(client: &mut SocketClient, id: &str) -> Value {
    client.done(json!({"type": "attach_session", "sessionId": id}))
}

fn prompt(client: &mut SocketClient, id: &str) {
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
}

fn question(client: &mut SocketClient) -> Value {
    let question = client.event("extension_ui_request");
    assert_eq!(question["method"], "permission", "{question}");
    question
}

fn response(id: &str, question: &Value, decision: &str) -> Value {
    json!({"type": "permission_response", "sessionId": id, "requestId": question["id"], "decision": decision})
}

fn respond(client: &mut SocketClient, id: &str, question: &Value, decision: &str) -> Value {
    client.call(response(id, question, decision))
}

#[test]
fn each_client_is_asked_as_it_understands_and_the_late_one_is_told() {
    let server = calling("cd sub && touch made > log");
    let home = home(&server, &json!({ "preset": "workspace" }));
    std::fs::create_dir(home.project().join("sub")).unwrap();
    let service = Service::start(&home, &[]);
    let (mut plain, mut editor, mut late) =
        (asked(&service, "plain"), knowing(&service, "editor"), knowing(&service, "late"));
    let id = open(&mut plain, &home, &[]);
    attach(&mut editor, &id);
    attach(&mut late, &id);
    prompt(&mut plain, &id);
    let full = question(&mut editor);
    assert_eq!(full["command"], "cd sub && touch made > log");
    assert_eq!(
        full["parsed"],
        json!([
            { "words": ["cd", "sub"], "redirections": [] },
            { "words": ["touch", "made"], "redirections": ["> log"] },
        ])
    );
    assert_eq!((&full["tool"], &full["toolCallId"]), (&json!("bash"), &json!("call_1")));
    assert_says(full["reason"].as_str().unwrap(), &["the preset workspace asks about running touch"]);
    assert_eq!(full["options"][0], json!({ "decision": "once", "text": "Yes, this once" }));
    assert!(full["deadline"].as_u64().unwrap() > 1_700_000_000_000);
    // pi's clients get what they always got, under the same id and number.
    let select = plain.event("extension_ui_request");
    let keys: Vec<&String> = select.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["type", "id", "method", "title", "options", "timeout", "sessionId", "seq"]);
    assert_eq!(
        (&select["method"], &select["id"], &select["seq"]),
        (&json!("select"), &full["id"], &full["seq"])
    );
    assert_eq!(question(&mut late)["id"], full["id"]);
    let done = respond(&mut editor, &id, &full, "once");
    assert_eq!(done["success"], true, "{done}");
    let resolved = plain.event("ui_request_resolved");
    assert_eq!((&resolved["by"], &resolved["decision"]), (&json!("editor"), &json!("once")));
    late.event("ui_request_resolved");
    assert_eq!(late.event("permission_decision")["client"], "editor");
    let refused = respond(&mut late, &id, &full, "deny");
    assert_eq!((&refused["success"], &refused["code"]), (&json!(false), &json!("not_found")));
    assert_eq!(refused["error"], "editor has answered this already: allowed this once.");
    plain.event("agent_settled");
    assert!(home.project().join("sub/made").exists());
}

#[test]
fn an_answer_of_a_select_is_the_same_and_words_need_no_second_question() {
    let server = MockServer::start([
        calls(&["touch one"]),
        Reply::stream(sse::calls(&[("call_2", "bash", json!({ "command": "touch two" }))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "workspace" }));
    let service = Service::start(&home, &[]);
    let (mut plain, mut editor) = (asked(&service, "plain"), knowing(&service, "editor"));
    let id = open(&mut plain, &home, &[]);
    attach(&mut editor, &id);
    prompt(&mut plain, &id);
    let select = plain.event("extension_ui_request");
    answer(&mut plain, &select, "No");
    let full = question(&mut editor);
    let resolved = editor.event("ui_request_resolved");
    assert_eq!((&resolved["by"], &resolved["decision"]), (&json!("plain"), &json!("deny")));
    let late = respond(&mut editor, &id, &full, "once");
    assert_eq!(late["error"], "plain has answered this already: denied.");
    let full = question(&mut editor);
    let mut line = response(&id, &full, "deny");
    line["message"] = json!("Use a test.");
    assert_eq!(editor.call(line)["success"], true);
    result_of(&mut plain);
    assert_eq!(result_of(&mut plain), "Permission denied: the user said no. The user says: Use a test.");
    plain.event("agent_settled");
}

#[test]
fn an_edit_shows_what_it_would_change_and_a_new_file_what_it_would_hold() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[
            ("call_1", "edit", json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]})),
            ("call_2", "write", json!({"path": "docs/new.txt", "content": "one\n"})),
        ])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "ask" }));
    home.write("a.txt", "one\ntwo\nthree\n");
    let service = Service::start(&home, &[]);
    let mut editor = knowing(&service, "editor");
    let id = open(&mut editor, &home, &[]);
    prompt(&mut editor, &id);
    let edit = question(&mut editor);
    let path = home.project().join("a.txt").display().to_string();
    assert_eq!((&edit["tool"], &edit["path"]), (&json!("edit"), &json!(path)));
    assert_eq!(edit["diff"], format!("--- a{path}\n+++ b{path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"));
    let refused = respond(&mut editor, &id, &edit, "always");
    assert_says(refused["error"].as_str().unwrap(), &["\"decision\"", "always", "once, deny"]);
    let mut line = response(&id, &edit, "once");
    line["message"] = json!("But be careful.");
    assert_says(editor.call(line)["error"].as_str().unwrap(), &["\"message\"", "deny"]);
    respond(&mut editor, &id, &edit, "once");
    let write = question(&mut editor);
    assert_says(write["diff"].as_str().unwrap(), &["--- /dev/null\n", "@@ -0,0 +1 @@\n+one\n"]);
    assert_eq!(
        write["options"][1]["rule"],
        json!({ "tool": "write", "path": "./docs/**", "action": "allow" })
    );
    respond(&mut editor, &id, &write, "session");
    editor.event("agent_settled");
    assert_eq!(std::fs::read_to_string(home.project().join("a.txt")).unwrap(), "one\n2\nthree\n");
    assert!(home.project().join("docs/new.txt").exists());
}

#[test]
fn several_questions_are_answered_in_any_order_and_survive_reconnects() {
    let server = calling("touch of-model");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut first = knowing(&service, "first");
    let id = open(&mut first, &home, &[]);
    prompt(&mut first, &id);
    let of_model = question(&mut first);
    first.send(&json!({"id": "b", "type": "bash", "sessionId": id, "command": "touch of-user"}));
    let of_user = question(&mut first);
    assert!(of_user.get("toolCallId").is_none(), "{of_user}");
    // The client that was asked is gone; the questions are not.
    drop(first);
    let mut second = knowing(&service, "second");
    let opened = second.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
    let shown: Vec<&Value> = opened["pendingUi"].as_array().unwrap().iter().collect();
    assert_eq!((&shown[0]["id"], &shown[1]["id"]), (&of_model["id"], &of_user["id"]));
    assert_eq!((&shown[0]["method"], &shown[0]["deadline"]), (&json!("permission"), &of_model["deadline"]));
    let mut plain = asked(&service, "plain");
    assert_eq!(attach(&mut plain, &id)["pendingUi"][1]["method"], "select");
    respond(&mut second, &id, &of_user, "once");
    assert_eq!(second.event("permission_decision")["decision"], "allowed");
    assert!(!home.project().join("of-model").exists());
    respond(&mut second, &id, &of_model, "deny");
    second.event("agent_settled");
    assert!(!home.project().join("of-model").exists());
    let found: Vec<(Value, Value)> =
        decisions(&home).into_iter().map(|it| (it["decision"].clone(), it["client"].clone())).collect();
    assert_eq!(found, [(json!("allowed"), json!("second")), (json!("denied"), json!("second"))]);
}

#[test]
fn abort_ends_all_questions_and_every_call_has_its_result() {
    let server = calling("touch of-model");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut editor = knowing(&service, "editor");
    let id = open(&mut editor, &home, &[]);
    prompt(&mut editor, &id);
    let of_model = question(&mut editor);
    editor.send(&json!({"id": "b", "type": "bash", "sessionId": id, "command": "touch of-user"}));
    let of_user = question(&mut editor);
    editor.send(&json!({"type": "abort", "sessionId": id, "scope": "all"}));
    let over = editor.all_until("the end", |line| line["type"] == "agent_settled");
    // Questions are taken back by tasks of their own.
    let is_resolved = |line: &Value| line["type"] == "ui_request_resolved";
    let mut resolved: Vec<Value> = over.into_iter().filter(is_resolved).collect();
    while resolved.len() < 2 {
        resolved.push(editor.until("the end of a question", is_resolved));
    }
    for question in [&of_model, &of_user] {
        assert!(resolved.iter().any(|line| line["id"] == question["id"]), "{resolved:?}");
    }
    let late = respond(&mut editor, &id, &of_model, "once");
    assert_says(late["error"].as_str().unwrap(), &["This question is over", "or the call was stopped"]);
    assert!(!home.project().join("of-model").exists() && !home.project().join("of-user").exists());
    let results = stored(&home).iter().filter(|entry| entry["message"]["role"] == "toolResult").count();
    assert_eq!(results, 1);
}

#[test]
fn tools_of_clients_and_background_processes_are_asked_about() {
    let server = MockServer::start([
        client_tools::calls(&[("deploy_1", "deploy")]),
        Reply::stream(sse::calls(&[(
            "call_2",
            "bash",
            json!({ "command": "touch made; sleep 600", "background": true }),
        )])),
        client_tools::answer(),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({ "permissions": { "preset": "workspace" }, "bash": { "background": true } }));
    let service = Service::start(&home, &[]);
    let (mut editor, mut provider) = (knowing(&service, "editor"), knowing(&service, "provider"));
    let id = open(&mut editor, &home, &[]);
    attach(&mut provider, &id);
    client_tools::register(&mut provider, &[client_tools::tool("deploy")]);
    prompt(&mut editor, &id);
    let deploy = question(&mut editor);
    assert_eq!((&deploy["tool"], &deploy["arguments"]), (&json!("deploy"), &json!({ "name": "deploy_1" })));
    respond(&mut editor, &id, &deploy, "once");
    let request = provider.event("tool_request");
    client_tools::respond(&mut provider, &request, "Deployed.");
    let background = question(&mut editor);
    assert_eq!(background["command"], "touch made; sleep 600");
    respond(&mut editor, &id, &background, "deny");
    editor.event("agent_settled");
    assert!(!home.project().join("made").exists());
    assert_eq!(decisions(&home).len(), 2);
    let running = editor.done(json!({"type": "list_processes", "sessionId": id}));
    assert_eq!(running["processes"], json!([]), "{running}");
}

#[test]
fn who_did_not_say_so_answers_nothing() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut editor = knowing(&service, "editor");
    let id = open(&mut editor, &home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    attach(&mut watcher, &id);
    let mut observer = service.client();
    observer.done(json!({
        "type": "hello", "protocol": 1, "capabilities": {"sessions": true, "permissions": true}, "role": "observe",
    }));
    attach(&mut observer, &id);
    prompt(&mut editor, &id);
    let full = question(&mut editor);
    for client in [&mut watcher, &mut observer] {
        let refused = respond(client, &id, &full, "once");
        assert_eq!(refused["code"], "forbidden", "{refused}");
    }
    let unknown = editor.call(response(&id, &json!({ "id": "none" }), "once"));
    assert_eq!(unknown["error"], "No question about a call has the id \"none\" in this session.");
    respond(&mut editor, &id, &full, "deny");
    editor.event("agent_settled");
    assert!(!home.project().join("made").exists());
}

#[test]
fn a_client_without_session_names_is_asked_and_told_of_the_end() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace" }));
    let service = Service::start(&home, &[]);
    let mut single = service.client();
    single.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "single"}, "capabilities": {"permissions": true},
    }));
    let id = open(&mut single, &home, &[]);
    let mut editor = knowing(&service, "editor");
    attach(&mut editor, &id);
    prompt(&mut single, &id);
    let full = question(&mut single);
    assert!(full.get("seq").is_none(), "{full}");
    respond(&mut editor, &id, &full, "once");
    let resolved = single.event("ui_request_resolved");
    assert_eq!((&resolved["id"], &resolved["decision"]), (&full["id"], &json!("once")));
    single.event("agent_settled");
    assert!(home.project().join("made").exists());
}

#[test]
fn so_many_questions_are_open_at_once() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut editor = knowing(&service, "editor");
    let id = open(&mut editor, &home, &[]);
    for number in 0..34 {
        let command = format!("touch made-{number}");
        editor.send(&json!({"id": command, "type": "bash", "sessionId": id, "command": command}));
    }
    let open: Vec<Value> = (0..32).map(|_| question(&mut editor)).collect();
    let shown = attach(&mut knowing(&service, "late"), &id)["pendingUi"].as_array().unwrap().len();
    assert_eq!(shown, 32);
    // An answer makes room for the next.
    respond(&mut editor, &id, &open[7], "deny");
    let next = question(&mut editor);
    assert!(open.iter().all(|it| it["command"] != next["command"]), "{next}");
    editor.send(&json!({"id": "end", "type": "abort", "sessionId": id, "scope": "all"}));
    let mut ended = 0;
    while ended < 33 {
        let line = editor.until("an end", |line| line["type"] == "response");
        ended += usize::from(line["command"] == "bash");
    }
    let left = attach(&mut knowing(&service, "last"), &id);
    assert!(left["pendingUi"].as_array().is_none_or(Vec::is_empty), "{left}");
}
