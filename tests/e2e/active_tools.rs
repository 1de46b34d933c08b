//! Which tools a session has, and which of them the model can call; `agentctl tools`.

use agentd_e2e::{
    Conversation, Daemon, Gate, Home, MockServer, Reply, Service, conversation::LineTransport, ctl, sse,
};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, records, text};

const DEFAULT: [&str; 4] = ["read", "bash", "edit", "write"];

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

fn active<W: LineTransport>(client: &mut Conversation<W>) -> Vec<String> {
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    let tools = tools.as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn set<W: LineTransport>(client: &mut Conversation<W>, tools: &[&str]) -> Value {
    client.done(json!({"type": "set_active_tools", "tools": tools}))["tools"].clone()
}

/// The tools that a request offers the model.
fn offered(server: &MockServer, request: usize) -> Vec<String> {
    let body = &server.requests()[request].body;
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// All system text of a request.
fn system(server: &MockServer, request: usize) -> String {
    let requests = server.requests();
    let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
    requests[request].messages().iter().filter(is_system).map(text).collect::<Vec<_>>().join("\n")
}

fn answers(count: usize) -> Vec<Reply> {
    (0..count).map(|_| Reply::stream(sse::answer("Ok."))).collect()
}

#[test]
fn get_tools_says_everything_about_each() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let tools = daemon.done(json!({"type": "get_tools"}))["tools"].clone();
    let built_in = [
        "read",
        "bash",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        "todo",
        "ask",
        "web_fetch",
        "web_search",
        "task",
    ];
    assert_eq!(names(&tools), built_in);
    assert_eq!(active(&mut daemon), DEFAULT);
    let read = &tools[0];
    assert_eq!(
        (&read["label"], &read["source"], &read["execution"]),
        (&json!("read"), &json!("builtin"), &json!("parallel"))
    );
    assert_eq!(read["parameters"]["required"], json!(["path"]));
    assert!(read["description"].as_str().expect("a text").len() > 20);
    assert!(read["snippet"].is_string() && read["guidelines"][0].is_string(), "{read}");
    assert!(read.get("client").is_none() && read.get("timeoutMs").is_none(), "{read}");
    assert!(!names(&tools).is_empty() && tools[4]["active"] == false);
}

#[test]
fn the_prompt_follows_the_tools() {
    let server = MockServer::start(answers(2));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(set(&mut daemon, &["grep", "read", "grep"]), json!(["read", "grep"]), "in the order of tools");
    daemon.prompt("Go.");
    assert_eq!(offered(&server, 0), ["read", "grep"]);
    assert_says(&system(&server, 0), &["- grep: ", "- read: "]);
    assert!(!system(&server, 0).contains("- bash: "));
    // The choice changes between two runs.
    set(&mut daemon, &["bash"]);
    let events = daemon.prompt("Go on.");
    let told = ended(&events, "system")[0].clone();
    assert_eq!(names(&told["toolsAdded"]), ["bash"]);
    assert_eq!(names(&told["toolsRemoved"]), ["read", "grep"]);
    assert_says(told["sections"]["tools"].as_str().expect("a section"), &["- bash: "]);
    assert_eq!(offered(&server, 1), ["bash"]);
    // pi reads the messages of the transcript; the choice is in an entry that pi skips.
    let file = records(&home.session_files()[0]);
    let chosen: Vec<&Value> = file.iter().filter(|record| record["type"] == "custom").collect();
    assert_eq!(chosen.len(), 2, "{file:?}");
    assert_eq!(chosen[1]["customType"], "agentd.active-tools");
    assert_eq!(chosen[1]["data"], json!({"tools": ["bash"]}));
}

#[test]
fn no_tools_at_all_can_be_active() {
    let server = MockServer::start(answers(1));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(set(&mut daemon, &[]), json!([]));
    daemon.prompt("Go.");
    assert!(offered(&server, 0).is_empty());
    assert_says(&system(&server, 0), &["(none)"]);
}

#[test]
fn a_running_run_goes_on_with_the_new_tools_at_its_next_turn() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::calls(&[(
            "c1",
            "grep",
            json!({"pattern": "x"}),
        )])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "+grep"]);
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    let _ = server.wait_for_requests(1);
    // While the answer streams, its calls use the tools of its request.
    assert_eq!(set(&mut daemon, &["read", "ls"]), json!(["read", "ls"]));
    gate.open();
    let events = daemon.settled();
    let result = ended(&events, "toolResult")[0];
    assert_eq!(result["isError"], false, "{result}");
    let told = ended(&events, "system");
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(names(&told[1]["toolsAdded"]), ["ls"]);
    assert_eq!(names(&told[1]["toolsRemoved"]), ["bash", "edit", "write", "grep"]);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let second = kinds.iter().rposition(|kind| *kind == "turn_start").expect("a second turn");
    assert_eq!(kinds[second + 1..second + 3], ["message_start", "message_end"], "{kinds:?}");
    assert_eq!(events[second + 1]["message"]["role"], "system");
    assert_eq!(offered(&server, 0), ["read", "bash", "edit", "write", "grep"]);
    assert_eq!(offered(&server, 1), ["read", "ls"]);
    assert_says(&system(&server, 1), &["- ls: "]);
}

#[test]
fn unknown_names_are_named_and_change_nothing() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_active_tools", "tools": ["read", "grepp", "Bash"]}));
    assert_eq!(refused["code"], "invalid_field");
    assert_says(&complaint(&refused), &["\"grepp\", \"Bash\"", "read, bash, edit, write, grep, find, ls"]);
    let refused = daemon.refused(json!({"type": "set_active_tools", "tools": "read"}));
    assert_says(&complaint(&refused), &["Invalid field \"tools\""]);
    let refused = daemon.refused(json!({"type": "set_active_tools"}));
    assert_says(&complaint(&refused), &["Missing field \"tools\""]);
    assert_eq!(active(&mut daemon), DEFAULT);
}

#[test]
fn a_choice_outlasts_the_daemon_and_flags_come_before_it() {
    let server = MockServer::start(answers(4));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    set(&mut daemon, &["read", "find"]);
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(active(&mut daemon), ["read", "find"]);
    let events = daemon.prompt("Two.");
    assert_eq!(names(&ended(&events, "system")[0]["toolsAdded"]), ["find"]);
    assert_eq!(offered(&server, 1), ["read", "find"]);
    // A copy keeps the choice, whatever entry it begins at.
    let messages = daemon.done(json!({"type": "get_fork_messages"}))["messages"].clone();
    let fork = json!({"type": "fork", "entryId": messages[1]["entryId"]});
    daemon.done(fork);
    assert_eq!(active(&mut daemon), ["read", "find"]);
    daemon.prompt("Three.");
    assert_eq!(offered(&server, 2), ["read", "find"]);
    let copy = daemon.done(json!({"type": "get_state"}))["sessionFile"].clone();
    daemon.close();
    let copy = copy.as_str().expect("a file");
    let mut daemon = Daemon::start(&home, &["--session", copy]);
    assert_eq!(active(&mut daemon), ["read", "find"]);
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--session", copy, "--tools", "bash,ls"]);
    assert_eq!(active(&mut daemon), ["bash", "ls"]);
}

#[test]
fn a_branch_that_knows_nothing_of_the_choice_is_told() {
    let server = MockServer::start(answers(3));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    set(&mut daemon, &["read"]);
    daemon.prompt("Two.");
    let messages = daemon.done(json!({"type": "get_fork_messages"}))["messages"].clone();
    daemon.done(json!({"type": "navigate_tree", "entryId": messages[0]["entryId"]}));
    assert_eq!(active(&mut daemon), ["read"], "going back keeps the tools, as it keeps the model");
    daemon.prompt("Otherwise.");
    assert_eq!(offered(&server, 2), ["read"]);
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(active(&mut daemon), ["read"]);
}

#[test]
fn what_flags_and_settings_leave_out_cannot_be_activated() {
    let server = MockServer::start(answers(1));
    let home = Home::with_model(&server);
    home.settings(&json!({"excludeTools": ["gr*"], "defaultTools": ["+grep", "+ls"]}));
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "read,ls,grep"]);
    let tools = daemon.done(json!({"type": "get_tools"}))["tools"].clone();
    assert_eq!(names(&tools), ["read", "ls"]);
    let refused = daemon.refused(json!({"type": "set_active_tools", "tools": ["bash"]}));
    assert_says(&complaint(&refused), &["\"bash\"", "this session has read, ls", "Flags or settings"]);
    daemon.prompt("Go.");
    assert_eq!(offered(&server, 0), ["read", "ls"]);
    let mut daemon = Daemon::start(&home, &["--no-session", "--no-tools"]);
    assert_eq!(daemon.done(json!({"type": "get_tools"}))["tools"], json!([]));
    let refused = daemon.refused(json!({"type": "set_active_tools", "tools": ["read"]}));
    assert_says(&complaint(&refused), &["this session has no tools"]);
}

#[test]
fn other_clients_are_told_and_observers_may_only_look() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut plain = service.client();
    let opened = plain.done(json!({"type": "open_session", "cwd": home.project()}));
    let attach = json!({"type": "attach_session", "sessionId": opened["sessionId"]});
    let (mut watcher, mut observer) = (service.client(), service.client());
    watcher.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    watcher.done(attach.clone());
    observer.done(attach);
    set(&mut plain, &["read"]);
    let changed = watcher.event("tools_changed");
    assert_eq!(changed["sessionId"], opened["sessionId"]);
    assert_eq!(changed["tools"][0], json!({"name": "read", "active": true, "source": "builtin"}));
    assert_eq!(changed["tools"][1], json!({"name": "bash", "active": false, "source": "builtin"}));
    // A choice that changes nothing sends no event.
    set(&mut plain, &["read"]);
    set(&mut plain, &["ls"]);
    let next = watcher.event("tools_changed");
    assert_eq!(next["seq"], json!(changed["seq"].as_u64().expect("a number") + 1));
    assert_eq!(active(&mut observer), ["ls"]);
    let refused = observer.refused(json!({"type": "set_active_tools", "tools": []}));
    assert_eq!(refused["code"], "forbidden");
    // The plain protocol has no such event: the next line is the response.
    plain.send(&json!({"id": "x", "type": "get_state"}));
    assert_eq!(plain.line()["id"], "x");
}

#[test]
fn a_choice_survives_unloading() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let opened =
        client.done(json!({"type": "open_session", "cwd": home.project(), "tools": ["read", "bash"]}));
    set(&mut client, &["bash"]);
    let id = opened["sessionId"].as_str().expect("an id");
    crate::unload::gone(&mut watcher, id);
    // The later choice wins over the one that the session was opened with.
    assert_eq!(active(&mut client), ["bash"]);
}

fn active_by_agentctl(home: &Home, args: &[&str]) -> Vec<String> {
    let said = ctl::run(home, &[&["tools"], args, &["--json"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let list: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let tools = list["tools"].as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn agentctl_tools_without_an_id_lists_those_of_a_new_session() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    home.settings(&json!({"defaultTools": ["+grep"]}));
    let said = ctl::run(&home, &["tools"]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 12, "{said:?}");
    assert!(lines[0].starts_with("* read        built in  "), "{said:?}");
    assert!(lines[4].starts_with("* grep ") && lines[5].starts_with("  find "), "{said:?}");
    // Each tool has name, label, description, schema, snippet and guidelines.
    let said = ctl::run(&home, &["tools", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let edit = &list["tools"][2];
    assert_eq!(
        (&edit["name"], &edit["label"], &edit["active"]),
        (&json!("edit"), &json!("edit"), &json!(true))
    );
    assert_eq!(edit["parameters"]["type"], "object");
    assert!(
        edit["description"].is_string() && edit["snippet"].is_string() && edit["guidelines"][0].is_string()
    );
    let refused = ctl::run(&home, &["tools", "--activate", "ls"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["no session of this folder"]);
}

#[test]
fn agentctl_tools_changes_a_session_with_a_daemon_and_without() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": "aaaa-1"}));
    client.done(json!({"type": "prompt", "message": "Go."}));
    client.settled();
    assert_eq!(
        active_by_agentctl(&home, &["aaaa", "--activate", "grep,find", "--deactivate", "bash"]),
        ["read", "edit", "write", "grep", "find"]
    );
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    assert_eq!(tools[1]["active"], json!(false), "{tools}");
    client.done(json!({"type": "hello", "protocol": 1, "client": {"name": "editor"}}));
    let tool = json!({"name": "open", "description": "Opens a file.", "parameters": {"type": "object"}});
    client.done(json!({"type": "register_tools", "tools": [tool]}));
    let said = ctl::run(&home, &["tools", "aaaa"]);
    assert_says(&said.stdout, &["* open        editor    Opens a file."]);
    for args in [["--activate", "grepp"], ["--deactivate", "grepp"]] {
        let refused = ctl::run(&home, &[&["tools", "aaaa"][..], &args].concat());
        assert_eq!(refused.code, 1, "{refused:?}");
        assert_says(&refused.stderr, &["Unknown tool \"grepp\"; this session has read, "]);
    }
    drop(client);
    drop(service);
    assert_eq!(active_by_agentctl(&home, &["aaaa"]), ["read", "edit", "write", "grep", "find"]);
    assert_eq!(
        active_by_agentctl(&home, &["aaaa", "--deactivate", "write"]),
        ["read", "edit", "grep", "find"]
    );
    assert_eq!(active_by_agentctl(&home, &["aaaa"]), ["read", "edit", "grep", "find"]);
    assert_eq!(ctl::run(&home, &["tools", "nothing-like-it"]).code, 1);
}
