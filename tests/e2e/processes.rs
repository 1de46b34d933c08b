//! `list_processes`: what runs for sessions, and what it works for.

use std::time::{Duration, Instant};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, processes, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, prompt, text};

/// How long what is killed may be seen.
const AFTERLIFE: Duration = Duration::from_secs(1);

fn list(daemon: &mut Daemon) -> Vec<Value> {
    processes_of(daemon.done(json!({"type": "list_processes"})))
}

/// The list, once it is as wished: what it tells of changes without an event that says so.
fn list_until(daemon: &mut Daemon, wished: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + DEADLINE;
    loop {
        let listed = list(daemon);
        if wished(&listed) {
            return listed;
        }
        assert!(Instant::now() < end, "{listed:?}");
    }
}

fn processes_of(mut data: Value) -> Vec<Value> {
    serde_json::from_value(data["processes"].take()).expect("a list")
}

/// The process with that id.
fn find(list: &[Value], pid: i32) -> &Value {
    list.iter().find(|process| process["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {list:?}"))
}

/// The process ids that a script printed, a line `pid N` each.
fn printed(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

/// A model that runs a script under the call id `c1`, and then says something.
fn running(script: &str) -> MockServer {
    MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script}))])),
        Reply::stream(sse::answer("Done.")),
    ])
}

#[test]
fn a_tool_call_is_listed_with_all_that_came_of_it() {
    // A grandchild, and one whose parent is gone, in a session of its own.
    let script = "sh -c 'sleep 1001 & echo pid $!; wait' & \
                  (setsid bash -c 'sleep 1002 & echo pid $!; disown; exit' &); echo pid $$; wait";
    let server = running(script);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(list(&mut daemon), [0; 0]);
    daemon.send(&prompt("Go."));
    let mut ids = Vec::new();
    while ids.len() < 3 {
        ids = printed(&text(&daemon.event("tool_execution_update")["partialResult"]));
    }
    let session = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    // A child that was forked is a shell for a moment, and one that a shell leaves has a parent for a moment.
    let listed = list_until(&mut daemon, |listed| {
        let is = |process: &Value, command: &str| process["command"] == command;
        let left = |process: &Value| is(process, "sleep 1002") && process.get("parentPid").is_none();
        listed.iter().any(|it| is(it, "sleep 1001")) && listed.iter().any(left)
    });
    for process in &listed {
        assert_eq!(
            (&process["kind"], &process["id"], &process["sessionId"]),
            (&json!("tool"), &json!("c1"), &session),
            "{process}"
        );
        assert!(process["memoryBytes"].is_u64() && process["cpuMs"].is_u64(), "{process}");
        let started = process["started"].as_str().expect("a time");
        assert!(started.starts_with("20") && started.ends_with('Z'), "{started}");
    }
    for id in &ids {
        find(&listed, *id);
    }
    let commands: Vec<&str> =
        listed.iter().map(|process| process["command"].as_str().expect("a command")).collect();
    assert!(commands[0].contains("-c sh -c 'sleep 1001"), "the shell is the oldest: {commands:?}");
    let sleeper = |seconds: &str| {
        let command = format!("sleep {seconds}");
        listed.iter().find(|process| process["command"] == command).expect("a sleeper")
    };
    let parent = sleeper("1001")["parentPid"].as_i64().expect("a parent");
    let parent = find(&listed, i32::try_from(parent).expect("a process id"));
    assert!(parent["command"].as_str().is_some_and(|command| command.starts_with("sh -c ")), "{parent}");
    assert_eq!(sleeper("1002").get("parentPid"), None, "it left its parents");
    let by_name = daemon.done(json!({"type": "list_processes", "sessionId": session}));
    assert_eq!(processes_of(by_name).len(), listed.len());

    let watched = processes::watch(&ids);
    daemon.done(json!({"type": "abort", "scope": "all"}));
    watched.assert_gone_within(AFTERLIFE);
    assert_eq!(list(&mut daemon), [0; 0]);
}

#[test]
fn what_a_finished_call_left_is_in_the_background() {
    let server = running("setsid sleep 1003 >/dev/null 2>&1 & echo pid $!");
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    let id = printed(&text(crate::support::ended(&events, "toolResult")[0]))[0];
    let background = processes::watch(&[id]);
    let listed = list(&mut daemon);
    let process = find(&listed, id);
    assert_eq!((&process["kind"], &process["id"]), (&json!("background"), &json!("c1")), "{process}");
    assert_eq!((listed.len(), process.get("parentPid")), (1, None));
    let survivors = daemon.done(json!({"type": "abort", "scope": "all"}));
    assert_eq!(survivors["ended"], json!([{"kind": "background"}]));
    background.assert_gone_within(AFTERLIFE);
    assert_eq!(list(&mut daemon), [0; 0]);
}

#[test]
fn each_session_of_a_daemon_has_its_own() {
    let home = Home::new();
    home.write("said", "up\n");
    let service = Service::start(&home, &[]);
    let mut clients = [service.client(), service.client()];
    let mut opened = Vec::new();
    for client in &mut clients {
        let data = client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
        // Says something only once it is the program that is listed.
        client.send(&json!({"id": 7, "type": "bash", "command": "exec tail -f said"}));
        client.event("bash_execution_update");
        opened.push(data["sessionId"].as_str().expect("an id").to_owned());
    }
    // An observer may look, and the order is that of the sessions.
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    let all = processes_of(observer.done(json!({"type": "list_processes"})));
    let sessions: Vec<&str> =
        all.iter().map(|process| process["sessionId"].as_str().expect("an id")).collect();
    opened.sort();
    assert_eq!(sessions, opened);
    for process in &all {
        assert_eq!((&process["kind"], &process["id"]), (&json!("bash"), &json!(7)), "{process}");
        assert_eq!(process["command"], "tail -f said");
    }
    let one = observer.done(json!({"type": "list_processes", "sessionId": opened[1]}));
    assert_eq!(processes_of(one), all[1..]);
    let refused = observer.refused(json!({"type": "list_processes", "sessionId": "nobody"}));
    assert_eq!(refused["code"], "session_not_found");
    assert_says(&complaint(&refused), &["nobody"]);
}
