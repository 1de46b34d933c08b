//! What agentd remembers of MCP servers between sessions, so that none waits for them, and what they may take of its memory.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use agentd_e2e::{Daemon, Home, MockServer, Reply, conversation::LineTransport, ctl, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    mcp::{SERVER, call, configure, direct, servers, wait_for},
    support::{assert_says, text},
};

/// Where a server notes what it gets, below its working directory.
const LOG: &str = "calls.log";

/// How often a server was started.
fn starts(home: &Home) -> usize {
    let log = fs::read_to_string(home.project().join(LOG)).unwrap_or_default();
    log.lines().filter(|line| *line == "started").count()
}

fn start(home: &Home) -> Daemon {
    let mut daemon = Daemon::start(home, &["--no-session"]);
    hello(&mut daemon, "test");
    daemon
}

/// The tools that are declared to the model in a prompt.
fn declared(daemon: &mut Daemon, model: &MockServer) -> Vec<String> {
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    offered(model, model.requests().len() - 1)
}

/// The prompts of servers, as commands.
fn prompts<W: LineTransport>(client: &mut agentd_e2e::Conversation<W>) -> Vec<String> {
    let all = client.done(json!({"type": "get_commands"}))["commands"].clone();
    let is_of_server = |command: &&Value| command["sourceInfo"]["source"] == "mcp";
    let all = all.as_array().expect("a list").iter().filter(is_of_server);
    all.map(|command| command["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_session_begins_with_the_tools_that_a_server_had_before() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write("count", "0");
    // Longer than the first prompt waits for a server.
    configure(&home, json!({"test": direct(&["--log", LOG, "--tools-in", "count", "--delay", "2000"])}));
    let mut first = start(&home);
    assert!(declared(&mut first, &model).contains(&"mcp__test__echo".to_owned()), "it was waited for");
    assert_eq!(text(&call(&mut first, &model, "mcp__test__echo", json!({"text": "one"}))), "one");
    assert!(first.close().status.success());
    let folder = home.agent_dir().join("mcp-cache");
    let files: Vec<_> = fs::read_dir(&folder).expect("the folder").flatten().collect();
    assert_eq!(files.len(), 1);
    let mode = files[0].metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // The next session knows its tools without starting it.
    home.write("count", "1");
    let mut second = start(&home);
    let before = declared(&mut second, &model);
    assert!(before.contains(&"mcp__test__echo".to_owned()), "{before:?}");
    let server = servers(&mut second)[0].clone();
    assert_eq!((&server["state"], &server["pid"], starts(&home)), (&json!("idle"), &Value::Null, 1));
    assert!(server["tools"].to_string().contains("mcp__test__echo"), "{server}");
    // The first call starts it, and what it has now is told.
    model.push(Reply::stream(sse::calls(&[("c1", "mcp__test__echo", json!({"text": "two"}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = second.prompt("Go.");
    let has_new =
        |event: &&Value| event["type"] == "tools_changed" && event.to_string().contains("mcp__test__usual_0");
    assert!(events.iter().any(|event| has_new(&event)), "{events:?}");
    assert_eq!(starts(&home), 2);
    let after = declared(&mut second, &model);
    assert!(after.contains(&"mcp__test__usual_0".to_owned()), "{after:?}");
    assert!(second.close().status.success());

    // And it is remembered.
    let mut third = start(&home);
    assert!(declared(&mut third, &model).contains(&"mcp__test__usual_0".to_owned()));
    assert_eq!(starts(&home), 2);
}

#[test]
fn a_server_is_asked_again_unasked_when_a_day_has_passed() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write("count", "0");
    configure(&home, json!({"test": direct(&["--log", LOG, "--tools-in", "count"])}));
    let mut first = start(&home);
    declared(&mut first, &model);
    assert!(first.close().status.success());
    let folder = fs::read_dir(home.agent_dir().join("mcp-cache")).expect("the folder");
    let file = folder.flatten().next().expect("a file").path();
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(&file).expect("the file")).expect("JSON");
    let day = 24 * 60 * 60 * 1000;
    kept["savedAt"] = json!(kept["savedAt"].as_u64().expect("a time") - day);
    fs::write(&file, kept.to_string()).expect("the file");
    home.write("count", "1");
    let mut second = start(&home);
    wait_for(&mut second, "connected");
    assert!(declared(&mut second, &model).contains(&"mcp__test__usual_0".to_owned()));
}

#[test]
fn a_server_that_is_not_there_any_more_is_waited_for_again() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    // Read by a shell: a file that was just written cannot be executed while another test forks.
    let script = |text: &str| home.write("server.sh", text);
    script(&format!("exec {SERVER}\n"));
    configure(&home, json!({"test": {"command": "/bin/sh", "args": ["server.sh"], "exposure": "direct"}}));
    let mut first = start(&home);
    assert!(declared(&mut first, &model).contains(&"mcp__test__echo".to_owned()));
    assert!(first.close().status.success());
    script("exit 3\n");
    let mut second = start(&home);
    let refused = call(&mut second, &model, "mcp__test__echo", json!({"text": "x"}));
    assert_says(&text(&refused), &["The MCP server \"test\" is not there", "ended with code 3"]);
    assert!(second.close().status.success());
    let mut third = start(&home);
    assert_eq!(declared(&mut third, &model), ["read", "bash", "edit", "write"]);
    assert_eq!(servers(&mut third)[0]["state"], "failed");
}

#[test]
fn prompts_of_a_server_that_nothing_needs_are_listed_from_before() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": {"command": SERVER, "args": ["--prompts", "--log", LOG]}}));
    let mut first = start(&home);
    assert!(prompts(&mut first).is_empty(), "nothing has connected it yet");
    model.push(Reply::stream(sse::answer("Ok.")));
    first.prompt("/mcp__test__show");
    assert!(first.close().status.success());
    let mut second = start(&home);
    assert!(prompts(&mut second).contains(&"mcp__test__review".to_owned()));
    assert_eq!((&servers(&mut second)[0]["state"], starts(&home)), (&json!("idle"), 1));
    model.push(Reply::stream(sse::answer("Ok.")));
    second.prompt("/mcp__test__review a.rs");
    assert_eq!(starts(&home), 2);
}

#[test]
fn looking_at_the_configuration_starts_no_server() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&["--log", LOG]), "bad name": direct(&[])}));
    for args in [&["config", "check"][..], &["config", "explain", "defaultModel"]] {
        let looked = ctl::run(&home, args);
        assert!(looked.code < 2, "{looked:?}");
        assert_eq!(looked.stdout.contains("\"bad name\""), args[1] == "check", "{looked:?}");
    }
    assert_eq!(starts(&home), 0);
}

#[test]
fn what_a_server_sends_is_charged_to_the_account_of_memory() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&[])}));
    // Fifteen megabytes for all servers together: less than the longest line.
    home.settings(&json!({"daemon": {"maxMemoryBytes": 120 << 20}}));
    let mut daemon = start(&home);
    let huge = call(&mut daemon, &model, "mcp__test__huge", json!({}));
    assert_says(
        &text(&huge),
        &["MCP tool test/huge failed", "messages of MCP servers take", "daemon.maxMemoryBytes"],
    );
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "on"}))), "on");
}

#[test]
fn the_first_prompt_does_not_wait_for_a_server_that_is_known() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let delay = Duration::from_secs(4);
    configure(&home, json!({"test": direct(&["--delay", &delay.as_millis().to_string()])}));
    let mut first = start(&home);
    assert!(declared(&mut first, &model).contains(&"mcp__test__echo".to_owned()));
    assert!(first.close().status.success());
    let begun = std::time::Instant::now();
    let mut second = start(&home);
    assert!(declared(&mut second, &model).contains(&"mcp__test__echo".to_owned()));
    assert!(begun.elapsed() < delay, "{:?}", begun.elapsed());
}
