//! Processes of sessions: `list_processes`, misbehaving commands, and no process left after a killed daemon.

use std::time::{Duration, Instant};

use agentd_e2e::{
    DEADLINE, Daemon, Home, MockServer, Reply, Service, binaries,
    processes::{self, Watched},
    sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, prompt, text};

fn list(daemon: &mut Daemon) -> Vec<Value> {
    processes_of(daemon.done(json!({"type": "list_processes"})))
}

/// Polls the list until it matches: processes change without an event.
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

fn find(list: &[Value], pid: i32) -> &Value {
    list.iter().find(|process| process["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {list:?}"))
}

/// The process ids in lines `pid N`.
fn printed(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

#[test]
fn a_tool_call_is_listed_with_all_that_came_of_it() {
    // A grandchild, and an orphan in a session of its own.
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
    // A forked child is a shell until it executes its program, and an orphan keeps its parent for a moment.
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
    watched.assert_gone_within(DEADLINE);
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
    background.assert_gone_within(DEADLINE);
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
        // `tail` prints only after it replaced the shell.
        client.send(&json!({"id": 7, "type": "bash", "command": "exec tail -f said"}));
        client.event("bash_execution_update");
        opened.push(data["sessionId"].as_str().expect("an id").to_owned());
    }
    // An observer may list processes; they are in the order of the sessions.
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

/// A script that starts `count` processes in each of five ways of escaping, and prints `pid N` for each, then `ready`:
/// children; sessions of their own; orphans; ignoring signals; ignoring signals without their environment.
fn escape_artists(count: usize) -> String {
    format!(
        "dir=$(mktemp -d); n={count}
        say='echo \"pid $$\" > \"$1.tmp\"; mv \"$1.tmp\" \"$1\"; '
        stay='while :; do sleep 1000; done'
        for i in $(seq $n); do
            sleep 1000 > /dev/null 2>&1 & echo \"pid $!\"
            setsid sh -c \"$say exec sleep 1000\" sh $dir/a$i > /dev/null 2>&1 &
            (setsid sh -c \"$say exec sleep 1000\" sh $dir/b$i > /dev/null 2>&1 &)
            sh -c \"trap '' TERM HUP INT; $say $stay\" sh $dir/c$i > /dev/null 2>&1 &
            (env -i setsid sh -c \"trap '' TERM HUP INT; $say $stay\" sh $dir/d$i > /dev/null 2>&1 < /dev/null &)
        done
        for i in $(seq $n); do for kind in a b c d; do
            until [ -e $dir/$kind$i ]; do sleep 0.01; done; cat $dir/$kind$i
        done; done
        rm -r $dir; echo ready; "
    )
}

/// The processes that a script reported.
fn said(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

/// Starts a script as a command of the user, and waits until it prints `ready`.
fn start(daemon: &mut Daemon, script: &str) -> Watched {
    daemon.send(&json!({"id": "work", "type": "bash", "command": script}));
    let mut output = String::new();
    while !output.contains("ready") {
        output.push_str(daemon.event("bash_execution_update")["delta"].as_str().expect("output"));
    }
    processes::watch(&said(&output))
}

/// Waits until the daemon lists no process. A shell that ignores signals may start one more child before it is killed, and
/// that child is not watched.
fn nothing_runs(daemon: &mut Daemon) {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = daemon.done(json!({"type": "list_processes"}));
        if left["processes"] == json!([]) {
            return;
        }
        assert!(Instant::now() < end, "still there: {left}");
    }
}

/// A model that runs this script, then answers with text.
fn running(script: &str) -> MockServer {
    MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script}))])),
        Reply::stream(sse::answer("Done.")),
    ])
}

/// The result of the only call of a run.
fn result(events: &[Value]) -> Value {
    ended(events, "toolResult")[0].clone()
}

/// The daemon, its guard, and its supervisors.
fn everything_of(daemon: &Daemon) -> Vec<u32> {
    let guards = processes::children(daemon.id());
    let supervisors = guards.iter().flat_map(|guard| processes::children(guard.unsigned_abs()));
    let helpers: Vec<u32> = guards.iter().copied().chain(supervisors).map(i32::unsigned_abs).collect();
    assert!(helpers.len() >= 2, "a guard and a supervisor: {helpers:?}");
    [vec![daemon.id()], helpers].concat()
}

#[test]
fn a_fork_bomb_ends_with_its_call() {
    // The bomb doubles ten times and then waits, so that it does no harm if nothing stops it.
    let bomb = "bomb() { [ $1 = 0 ] && exec sleep 1000; bomb $(($1 - 1)) | bomb $(($1 - 1)) & wait; }";
    let server = running(&format!("{bomb}; bomb 10; sleep 1000"));
    let home = Home::with_model(&server);
    home.settings(&json!({"processes": {"maxCount": 100}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = result(&daemon.prompt("Go."));
    assert_eq!(result["isError"], true);
    assert_says(
        &text(&result),
        &["Command killed: it had more than 100 processes (setting processes.maxCount)"],
    );
    nothing_runs(&mut daemon);
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo well"}))["output"], "well\n");
}

#[test]
fn limits_of_output_and_memory_are_reported() {
    let home = Home::new();
    home.settings(&json!({"processes": {"maxMemoryBytes": 50_000_000, "maxOutputBytes": 1000}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let wrote = daemon.done(json!({"type": "bash", "command": "head -c 1000 /dev/zero | tr '\\0' x; yes"}));
    let output = wrote["output"].as_str().expect("output");
    assert_says(
        output,
        &["\n\nCommand killed: it wrote more than 1000 bytes (setting processes.maxOutputBytes)"],
    );
    assert!(output.starts_with(&"x".repeat(1000)) && !output.contains("y\n"), "{output}");
    let hog = "x=$(head -c 1000000 /dev/zero | tr '\\0' x); while :; do y=$y$x; done";
    let grew = daemon.done(json!({"type": "bash", "command": hog}));
    assert_says(grew["output"].as_str().expect("output"), &["memory (setting processes.maxMemoryBytes)"]);
    assert_eq!((&grew["cancelled"], &grew["exitCode"]), (&json!(false), &json!(137)));
    nothing_runs(&mut daemon);
}

#[test]
fn a_command_may_close_its_output_and_live() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let children = start(&mut daemon, "echo pid $$; echo ready; exec sleep 1000 >&- 2>&-");
    assert!(children.all_alive());
    daemon.done(json!({"type": "abort_bash"}));
    children.assert_gone_within(DEADLINE);
    let left = daemon.done(json!({"type": "bash", "command": "sleep 1000 >&- 2>&- & echo pid $!"}));
    let left = processes::watch(&said(left["output"].as_str().expect("output")));
    assert!(left.all_alive(), "it is in the background");
    daemon.close();
    left.assert_gone_within(DEADLINE);
}

#[test]
fn a_flood_of_binary_output_takes_little_memory() {
    let server = running("timeout 1.5 cat /dev/urandom; exit 3");
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "true"}));
    let idle = processes::usage(daemon.id()).resident;
    let result = result(&daemon.prompt("Go."));
    let peak = processes::usage(daemon.id()).peak;
    assert_says(&text(&result), &["Command exited with code 3", "Full output: "]);
    assert!(peak < idle + (48 << 20), "{} MiB more", (peak - idle) >> 20);
}

#[test]
fn a_full_disk_loses_the_file_and_not_the_result() {
    let server = running("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end");
    let home = Home::with_model(&server);
    let mut command = home.command("/bin/bash");
    // `ulimit -f` counts kilobytes; without the trap, the signal would end the process where a full disk returns an error.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$AGENTD\" --stdio --no-session";
    command.args(["-c", script]).env("AGENTD", binaries::agentd());
    let mut daemon = Daemon::start_command(command);
    let result = result(&daemon.prompt("Go."));
    assert_says(&text(&result), &["end", "The full output could not be saved: file too large"]);
    assert_eq!(result["details"].get("fullOutputPath"), None, "{result}");
    let temp = home.root().join("tmp");
    let left: Vec<_> = std::fs::read_dir(&temp).map(|files| files.flatten().collect()).unwrap_or_default();
    assert!(left.iter().all(|file| !file.file_name().to_string_lossy().starts_with("pi-bash-")), "{left:?}");
}

#[test]
fn fifty_children_end_with_a_killed_daemon() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let children = start(&mut daemon, &(escape_artists(10) + "wait"));
    daemon.signal(Signal::KILL);
    drop(daemon);
    children.assert_gone_within(DEADLINE);
}

#[test]
fn fifty_children_of_a_daemon_killed_with_all_its_helpers_end_at_the_next_start() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let children = start(&mut daemon, &(escape_artists(10) + "wait"));
    let all = everything_of(&daemon);
    for signal in [Signal::STOP, Signal::KILL] {
        all.iter().for_each(|id| processes::signal(*id, signal));
    }
    drop(daemon);
    assert!(children.all_alive(), "no process was left to end them");

    let mut next = Daemon::start(&home, &["--no-session"]);
    children.assert_gone_within(DEADLINE);
    // Its own commands end likewise: the daemon notes that they are its own.
    let owners = home.agent_dir().join("run/owners");
    let notes = || std::fs::read_dir(&owners).map_or(0, Iterator::count);
    let mark = next.done(json!({"type": "bash", "command": "echo $AGENTD_OWNER"}));
    assert!(owners.join(mark["output"].as_str().expect("output").trim()).exists());
    assert_eq!(notes(), 1);
    next.close();
    assert_eq!(notes(), 0, "nothing is noted of a daemon that has ended");
}

#[test]
fn daemons_of_one_directory_leave_each_other_alone() {
    let home = Home::new();
    let mut first = Daemon::start(&home, &["--no-session"]);
    let children = start(&mut first, &(escape_artists(2) + "wait"));
    let mut second = Daemon::start(&home, &["--no-session"]);
    second.done(json!({"type": "bash", "command": "true"}));
    let others = start(&mut second, &(escape_artists(2) + "wait"));
    second.signal(Signal::KILL);
    drop(second);
    others.assert_gone_within(DEADLINE);
    let mut third = Daemon::start(&home, &["--no-session"]);
    third.done(json!({"type": "bash", "command": "true"}));
    assert!(children.all_alive());
}

#[test]
fn whatever_ends_a_command_leaves_nothing() {
    let script = escape_artists(3);
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let children = start(&mut daemon, &format!("{script} wait"));
    daemon.done(json!({"type": "abort_bash"}));
    children.assert_gone_within(DEADLINE);
    nothing_runs(&mut daemon);

    let left = start(&mut daemon, &script);
    daemon.until("the end of the command", |line| line["id"] == "work" && line["type"] == "response");
    assert!(left.all_alive(), "in the background");
    daemon.end_input();
    daemon.wait();
    left.assert_gone_within(Duration::ZERO);
}

#[test]
fn a_time_limit_leaves_nothing() {
    let script = escape_artists(3) + "wait";
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script, "timeout": 6}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = result(&daemon.prompt("Go."));
    assert_says(&text(&result), &["ready", "Command timed out after 6 seconds"]);
    for id in said(&text(&result)) {
        assert!(!std::path::Path::new(&format!("/proc/{id}/exe")).exists(), "{id} is still there");
    }
    nothing_runs(&mut daemon);
}

#[test]
fn a_closed_session_leaves_nothing() {
    let home = Home::new();
    let service = agentd_e2e::Service::start(&home, &[]);
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let script = escape_artists(3);
    let output = client.done(json!({"type": "bash", "command": script}))["output"].clone();
    let left = processes::watch(&said(output.as_str().expect("output")));
    assert!(left.all_alive());
    client.done(json!({"type": "close_session", "sessionId": opened["sessionId"]}));
    left.assert_gone_within(DEADLINE);
}
