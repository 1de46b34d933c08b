//! Prompts of MCP servers as commands, their resources in `read`, and the log of what servers say.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, conversation::LineTransport, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    mcp::{call, configure, direct, wait_for},
    support::{assert_says, complaint, ended, text},
};

fn start(servers: Value) -> (MockServer, Home, Daemon) {
    start_with(servers, &[])
}

fn start_with(servers: Value, args: &[&str]) -> (MockServer, Home, Daemon) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, servers);
    let mut daemon = Daemon::start_with(&home, args, |command| {
        command.env("TEST_SECRET", "hush-hush-0123456789");
    });
    hello(&mut daemon, "test");
    (model, home, daemon)
}

/// The commands of MCP servers.
fn commands<W: LineTransport>(client: &mut agentd_e2e::Conversation<W>) -> Vec<Value> {
    let all = client.done(json!({"type": "get_commands"}))["commands"].clone();
    let is_of_server = |command: &&Value| command["sourceInfo"]["source"] == "mcp";
    all.as_array().expect("a list").iter().filter(is_of_server).cloned().collect()
}

/// Waits until a server has listed its prompts.
fn until_listed(daemon: &mut Daemon, name: &str) {
    let has = |line: &Value| line["servers"][0]["prompts"].to_string().contains(name);
    if !has(&daemon.done(json!({"type": "get_mcp_servers"}))) {
        daemon.until("the prompts", |line| line["type"] == "mcp_servers_change" && has(line));
    }
}

/// The content of the last message that the model got.
fn last_message(model: &MockServer) -> Value {
    let request = model.requests().last().expect("a request").clone();
    request.messages().last().expect("a message")["content"].clone()
}

#[test]
fn prompts_of_servers_are_commands() {
    let (model, home, mut daemon) = start(json!({"test": direct(&["--prompts"])}));
    until_listed(&mut daemon, "review");
    let listed = commands(&mut daemon);
    let names: Vec<&Value> = listed.iter().map(|command| &command["name"]).collect();
    assert_eq!(names, ["mcp__test__hang", "mcp__test__refuse", "mcp__test__review", "mcp__test__show"]);
    let review = &listed[2];
    assert_eq!(
        (&review["source"], &review["description"], &review["argumentHint"]),
        (&json!("prompt"), &json!("Reviews a file."), &json!("<file> [focus]"))
    );
    assert_eq!(review["sourceInfo"]["path"], home.agent_dir().join("mcp.json").display().to_string());
    assert_eq!(review["sourceInfo"]["scope"], "user");

    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("/mcp__test__review 'a b.rs' focus=speed");
    let asked = last_message(&model).to_string();
    assert!(asked.contains("Review with") && asked.contains("a b.rs") && asked.contains("speed"), "{asked}");
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = daemon.prompt("/mcp__test__show");
    assert_says(&last_message(&model).to_string(), &["Look at this.", "what was noted"]);
    let message = ended(&events, "user")[0].to_string();
    assert_says(&message, &["Look at this.", "\"image/png\""]);

    // What does not work is told, and nothing is sent to the model.
    let before = model.requests().len();
    for (message, says) in [
        ("/mcp__test__review", &["\"file\" is missing", "<file> [focus]"][..]),
        ("/mcp__test__show x", &["takes no arguments"]),
        ("/mcp__test__refuse", &["could not be had", "no such prompt"]),
        ("/mcp__test__other x", &["there are", "/mcp__test__review"]),
    ] {
        let refused = daemon.refused(json!({"type": "prompt", "message": message}));
        assert_says(&complaint(&refused), says);
    }
    assert_eq!(model.requests().len(), before);
}

#[test]
fn a_prompt_that_is_new_counts_and_a_server_that_connects_is_waited_for() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&["--prompts"])}));
    // The first message comes before the server is connected.
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("/mcp__test__review file=x.rs");
    assert_says(&last_message(&model).to_string(), &["Review with", "x.rs"]);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__add_prompt", json!({}))), "added");
    until_listed(&mut daemon, "later");
    assert!(commands(&mut daemon).iter().any(|command| command["name"] == "mcp__test__later"));
}

#[test]
fn a_server_that_hangs_holds_up_no_command_and_the_message_can_be_taken_back() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&["--prompts", "--log", "calls.log"])}));
    until_listed(&mut daemon, "hang");
    daemon.send(&json!({"type": "prompt", "id": "p", "message": "/mcp__test__hang"}));
    // Commands are answered meanwhile.
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
    daemon.send(&json!({"type": "abort"}));
    let refused = daemon.until("the answer to the prompt", |line| line["id"] == "p");
    assert_eq!((&refused["success"], &refused["code"]), (&json!(false), &json!("aborted")), "{refused}");
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go on.");
    daemon.send(&json!({"type": "prompt", "id": "q", "message": "/mcp__test__hang"}));
    assert!(daemon.close().status.success(), "the end of the session does not wait for the server");
}

#[test]
fn read_takes_resources_of_servers() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&["--resources"])}));
    let read = |daemon: &mut Daemon, arguments: Value| call(daemon, &model, "read", arguments);
    assert_eq!(text(&read(&mut daemon, json!({"path": "mcp://test/test:notes"}))), "what was noted");
    let long = json!({"path": "mcp://test/test:a b/long?x=1", "offset": 2999});
    let rest = read(&mut daemon, long);
    assert_says(&text(&rest), &["line\nline"]);
    let whole = read(&mut daemon, json!({"path": "mcp://test/test:a b/long?x=1"}));
    assert_says(&text(&whole), &["Showing lines 1-2000 of 3001", "Use offset=2001"]);
    let picture = read(&mut daemon, json!({"path": "mcp://test/test:picture"}));
    assert!(picture["content"].to_string().contains("\"image/png\""), "{picture}");
    for (path, says) in [
        ("mcp://test/test:x", &["Resource test:x of the MCP server \"test\"", "no such resource"][..]),
        ("mcp://other/x:1", &["No MCP server \"other\"", "there are test"]),
        ("mcp://test", &["mcp://<server>/<uri>"]),
    ] {
        let missing = read(&mut daemon, json!({"path": path}));
        assert_eq!(missing["isError"], true);
        assert_says(&text(&missing), says);
    }
}

#[test]
fn a_resource_in_read_is_judged_as_by_its_own_tool() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&["--resources"])}));
    home.write("a.txt", "a file");
    home.settings(&json!({"permissions": {"rules": [{"tool": "read_mcp_resource", "action": "deny"}]}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let denied = call(&mut daemon, &model, "read", json!({"path": "mcp://test/test:notes"}));
    assert_says(&text(&denied), &["Permission denied"]);
    assert_eq!(text(&call(&mut daemon, &model, "read", json!({"path": "a.txt"}))), "a file");
}

/// The log, once it has this text.
fn log_with(home: &Home, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let log = fs::read_to_string(home.agent_dir().join("mcp.log")).unwrap_or_default();
        if log.contains(wanted) {
            return log;
        }
        assert!(begun.elapsed() < DEADLINE, "{wanted:?} is not in the log: {log}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_servers_say_is_in_a_log_without_secrets() {
    let mut entry = direct(&[]);
    entry["env"] = json!({"TEST_SECRET": "${TEST_SECRET}"});
    let (model, home, mut daemon) = start(json!({"test": entry}));
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__log", json!({}))), "logged");
    let log = log_with(&home, "stderr: ");
    let log = if log.contains("db: ") { log } else { log_with(&home, "db: ") };
    assert_says(
        &log,
        &[
            "[test] error db: opened with [redacted]\n    and more\n",
            "[test] stderr: a word with [redacted]\n",
        ],
    );
    assert!(!log.contains("hush"), "{log}");
    // A flood is counted, and costs nobody else anything.
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__flood", json!({}))), "flooded");
    drop(daemon.close());
    let log = log_with(&home, "left out");
    assert!(log.lines().count() < 5000, "{}", log.lines().count());
}

#[test]
fn a_shared_program_serves_sessions_and_ends_with_the_last() {
    use agentd_e2e::{Service, processes};
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut entry = direct(&[]);
    entry["shared"] = json!(true);
    configure(&home, json!({"test": entry}));
    let service = Service::start(&home, &[]);
    let (mut one, mut other) = (service.client(), service.client());
    let open = |client: &mut agentd_e2e::SocketClient| {
        hello(client, "test");
        let cwd = home.project().display().to_string();
        let opened = client.done(json!({"type": "open_session", "cwd": cwd, "ephemeral": true}));
        let there = wait_for(client, "connected");
        (opened["sessionId"].clone(), there[0]["pid"].as_i64().expect("a process id"))
    };
    let ((first, pid), (second, same)) = (open(&mut one), open(&mut other));
    assert_eq!(pid, same, "both sessions have the same process");
    let watched = processes::watch(&[i32::try_from(pid).expect("a process id")]);
    assert_eq!(text(&call(&mut one, &model, "mcp__test__echo", json!({"text": "one"}))), "one");
    one.done(json!({"type": "close_session", "sessionId": first}));
    assert_eq!(text(&call(&mut other, &model, "mcp__test__echo", json!({"text": "two"}))), "two");
    assert!(watched.all_alive());
    other.done(json!({"type": "close_session", "sessionId": second}));
    watched.assert_gone_within(DEADLINE);
}
