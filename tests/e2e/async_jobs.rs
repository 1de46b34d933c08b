//! Commands of `bash` as jobs (`async`): beside the run, with a result that is delivered, and never lost.

use std::{fs, path::PathBuf, process::Command};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, mock_server::Request, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, ended, live_sessions, text};

/// A home with jobs, whose project has a pipe `go` that commands wait at.
pub(crate) fn home(model: &MockServer, more: Value) -> Home {
    let home = Home::with_model(model);
    let mut settings = json!({"async": {"enabled": true}});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    home.settings(&settings);
    pipe(&home, "go");
    home
}

/// Makes a pipe in the project.
pub(crate) fn pipe(home: &Home, name: &str) -> PathBuf {
    let path = home.project().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Lets the command go on that waits at the pipe `go`.
pub(crate) fn go(home: &Home) {
    fs::write(home.project().join("go"), "").unwrap();
}

/// A model that makes these calls, each in a turn of its own, and answers `Ok.` to all else.
pub(crate) fn calls(calls: Vec<(&'static str, Value)>) -> MockServer {
    let mut replies: Vec<Reply> = Vec::new();
    for (number, (tool, arguments)) in calls.into_iter().enumerate() {
        replies.push(Reply::stream(sse::calls(&[(&format!("c{number}"), tool, arguments)])));
    }
    replies.extend((0..4).map(|_| Reply::stream(sse::answer("Ok."))));
    MockServer::start(replies)
}

pub(crate) fn in_background(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command, "async": true}))
}

pub(crate) fn results(events: &[Value]) -> Vec<String> {
    ended(events, "toolResult").into_iter().map(text).collect()
}

fn all(request: &Request) -> String {
    request.messages().iter().map(text).collect::<Vec<_>>().join("\n")
}

fn is_told(event: &Value) -> bool {
    event["type"] == "message_end" && event["message"]["customType"] == "agentd.job"
}

/// The process ids in lines `pid N` of the output of a job.
pub(crate) fn pids(daemon: &mut Daemon, id: &str, count: usize) -> Vec<i32> {
    loop {
        let output = daemon.done(json!({"type": "job_output", "jobId": id}));
        let output = output["output"].as_str().expect("an output");
        let ids: Vec<i32> =
            output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
        if ids.len() == count {
            return ids;
        }
        std::thread::yield_now();
    }
}

const TREE: &str =
    "setsid sleep 1001 & echo pid $!; (trap '' TERM; sleep 1002) & echo pid $!; echo pid $$; wait";

#[test]
fn a_command_goes_on_beside_the_run_and_its_result_is_delivered() {
    let model = calls(vec![in_background("echo begin; cat go; echo the result; exit 3")]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    assert_eq!(text(&result), "Backgrounded as job bg-1; result will be delivered automatically.");
    assert_eq!(result["details"], json!({"async": {"state": "running", "jobId": "bg-1", "type": "bash"}}));
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).expect("an event");
    assert!(at("job_start") < at("tool_execution_end"), "{events:?}");
    assert_eq!(events[at("job_start")]["job"]["id"], "bg-1");
    let listed = daemon.done(json!({"type": "list_jobs"}));
    let job = &listed["jobs"][0];
    assert_eq!(
        (&job["id"], &job["kind"], &job["status"], &job["toolCallId"]),
        (&json!("bg-1"), &json!("process"), &json!("running"), &json!("c0"))
    );
    assert!(job["startedAt"].as_u64().expect("a time") > 1_700_000_000_000, "{job}");
    go(&home);
    let end = daemon.event("job_end");
    assert_eq!((&end["job"]["status"], &end["job"]["exitCode"]), (&json!("failed"), &json!(3)), "{end}");
    let told = daemon.until("the message", is_told);
    let said = text(&told["message"]);
    assert!(said.starts_with("Job bg-1 exited with code 3 after "), "{said}");
    assert!(said.ends_with("\n$ echo begin; cat go; echo the result; exit 3\n\nbegin\nthe result"), "{said}");
    assert_eq!(told["message"]["details"]["job"]["id"], "bg-1");
    daemon.prompt("And?");
    let requests = model.requests();
    assert_eq!(requests.len(), 3, "its end began no run");
    assert_says(&all(&requests[2]), &["the result", "And?"]);
}

#[test]
fn its_end_wakes_an_idle_session_if_the_setting_says_so() {
    let model = calls(vec![in_background("cat go; echo found it")]);
    let home = home(&model, json!({"task": {"wakeUp": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.prompt("Go.");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["hasPendingAsyncWork"], &state["isSettled"]), (&json!(true), &json!(false)));
    go(&home);
    daemon.settled();
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    assert_says(&all(&requests[2]), &["found it"]);
}

#[test]
fn wait_returns_with_the_next_end_or_the_next_message() {
    let waits = ("wait", json!({}));
    let model = calls(vec![in_background("cat go; exit 2"), waits.clone(), waits.clone(), waits]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let is_wait = |event: &Value, kind: &str| event["type"] == kind && event["toolName"] == "wait";
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("a wait", |event| is_wait(event, "tool_execution_start"));
    daemon.done(json!({"type": "steer", "message": "Hurry."}));
    let end = daemon.until("its end", |event| is_wait(event, "tool_execution_end"));
    assert_eq!(text(&end["result"]), "A message has come.\nStill running: bg-1");
    daemon.until("a wait", |event| is_wait(event, "tool_execution_start"));
    go(&home);
    let end = daemon.until("its end", |event| is_wait(event, "tool_execution_end"));
    assert_eq!(text(&end["result"]), "bg-1 has ended: exit code 2\nNothing is running any more.");
    let end = daemon.until("its end", |event| is_wait(event, "tool_execution_end"));
    assert_eq!(text(&end["result"]), "Nothing to wait for.");
    daemon.settled();
}

#[test]
fn an_abort_of_the_turn_leaves_it_and_kill_job_ends_all_of_it() {
    let model = calls(vec![in_background(TREE), ("bash", json!({"command": "echo up; sleep 1004"}))]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("the second call", |line| {
        line["type"] == "tool_execution_update" && line["partialResult"]["content"] != json!([])
    });
    let receipt = daemon.done(json!({"type": "abort", "scope": "turn"}));
    assert_eq!(receipt["survives"], json!([{"kind": "background", "id": "bg-1", "name": TREE}]));
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 3));
    assert!(watched.all_alive());
    let killed = daemon.done(json!({"type": "kill_job", "jobId": "bg-1"}));
    assert_eq!(killed["status"], "aborted", "{killed}");
    watched.assert_gone_within(DEADLINE);
    let told = daemon.until("the message", is_told);
    assert_says(&text(&told["message"]), &["Job bg-1 was ended by SIGTERM after ", ", by the user."]);
}

#[test]
fn a_time_limit_counts() {
    let limited = json!({"command": "echo up; sleep 1000", "async": true, "timeout": 0.3});
    let model = calls(vec![("bash", limited), ("wait", json!({}))]);
    let home = home(&model, json!({}));
    let events = Daemon::start(&home, &[]).prompt("Go.");
    assert_says(&results(&events)[1], &["bg-1 has ended: "]);
    let told = events.iter().find(|event| is_told(event)).expect("a message");
    assert_says(&text(&told["message"]), &["was ended by SIGTERM after ", ", at its time limit.", "\n\nup"]);
}

#[test]
fn a_killed_daemon_leaves_nobody_and_the_session_says_so() {
    let model = calls(vec![in_background(TREE)]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 3));
    daemon.signal(Signal::KILL);
    watched.assert_gone_within(DEADLINE);
    drop(daemon);
    for _ in 0..2 {
        let mut daemon = Daemon::start(&home, &["--continue"]);
        let jobs = daemon.done(json!({"type": "list_jobs"}));
        let job = &jobs["jobs"][0];
        assert_eq!((&job["id"], &job["status"]), (&json!("bg-1"), &json!("interrupted")), "{jobs}");
        let output = daemon.done(json!({"type": "job_output", "jobId": "bg-1"}));
        assert_eq!(output["output"].as_str().expect("an output").lines().count(), 3, "{output}");
        assert_eq!(output["eof"], true);
        let messages = daemon.done(json!({"type": "get_messages"}));
        let told: Vec<&Value> = messages["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["customType"] == "agentd.job")
            .collect();
        assert_eq!(told.len(), 1, "it is told once: {told:?}");
        assert_says(&text(told[0]), &["Job bg-1 was interrupted: agentd ended while it ran", "artifact://"]);
        daemon.close();
    }
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.prompt("And?");
    assert_says(&all(model.requests().last().unwrap()), &["Job bg-1 was interrupted", "And?"]);
}

#[test]
fn a_turn_that_a_crash_interrupted_goes_on_and_knows_of_its_job() {
    let model = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": TREE, "async": true}))])),
        Reply::stream(sse::calls(&[("c2", "bash", json!({"command": "echo up; sleep 1004"}))])),
        Reply::stream(sse::answer("Here again.")),
    ]);
    let home = home(&model, json!({"crashRecovery": "resume"}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("the second call", |line| {
        line["type"] == "tool_execution_update" && line["partialResult"]["content"] != json!([])
    });
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 3));
    daemon.signal(Signal::KILL);
    watched.assert_gone_within(DEADLINE);
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.settled();
    let requests = model.requests();
    let messages = requests[2].messages();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool", "user"]);
    assert_says(&text(&messages[6]), &["Job bg-1 was interrupted"]);
}

#[test]
fn the_end_of_the_session_ends_it_and_the_model_learns_of_that() {
    let model = calls(vec![in_background(TREE)]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 3));
    assert!(daemon.close().status.success());
    watched.assert_gone_within(DEADLINE);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.prompt("And?");
    let said = all(model.requests().last().unwrap());
    assert_eq!(said.matches("Job bg-1 ").count(), 1, "{said}");
    assert_says(&said, &["Job bg-1 was ended by SIG"]);
    // Its id is not given again.
    let next = calls(vec![in_background("true")]);
    home.configure(&agentd_e2e::home::models(&next.base_url()));
    drop(daemon);
    let events = Daemon::start(&home, &["--continue"]).prompt("Go.");
    assert_says(&results(&events)[0], &["job bg-2;"]);
}

#[test]
fn a_copy_of_a_session_has_no_jobs() {
    let model = calls(vec![in_background("sleep 1000")]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    daemon.done(json!({"type": "clone"}));
    assert_eq!(daemon.done(json!({"type": "list_jobs"}))["jobs"], json!([]));
    let messages = daemon.done(json!({"type": "get_messages"})).to_string();
    assert!(!messages.contains("interrupted"), "{messages}");
}

#[test]
fn a_flood_is_bounded_in_memory_and_on_disk() {
    let model = calls(vec![in_background("yes | head -c 200000000; echo; echo end")]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let before = processes::usage(daemon.id()).resident;
    daemon.prompt("Go.");
    let end = daemon.event("job_end");
    let grown = processes::usage(daemon.id()).peak.saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes");
    assert_eq!(end["job"]["outputBytes"], 200_000_005, "{end}");
    let told = daemon.until("the message", is_told);
    let said = text(&told["message"]);
    assert!(said.len() < 60_000, "{}", said.len());
    assert_says(
        &said,
        &["y\n\nend", "[Showing the end of 200000005 bytes. The first 67108864 bytes: artifact://"],
    );
    let id = end["job"]["artifactId"].as_str().expect("an artifact");
    let part = daemon.done(json!({"type": "get_artifact", "artifactId": id, "limit": 4}));
    assert_eq!((&part["data"], &part["totalBytes"]), (&json!("y\ny\n"), &json!(67_108_864)));
    // The beginning comes from the file, the end from memory, and what is in neither is left out.
    let page = |offset: u64| json!({"type": "job_output", "jobId": "bg-1", "offset": offset, "limit": 6});
    let first = daemon.done(page(0));
    assert_eq!((&first["output"], &first["nextOffset"]), (&json!("y\ny\ny\n"), &json!(6)));
    let middle = daemon.done(page(100_000_000));
    assert!(middle["offset"].as_u64().unwrap() > 100_000_000, "{middle}");
    let last = daemon.done(page(200_000_001));
    assert_eq!((&last["output"], &last["eof"]), (&json!("end\n"), &json!(true)), "{last}");
}

#[test]
fn a_result_comes_while_nobody_looks_and_is_there_later() {
    let model = calls(vec![in_background("cat go; echo the result")]);
    let home = home(&model, json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    let id = opened["sessionId"].as_str().expect("an id").to_owned();
    client.prompt("Go.");
    drop(client);
    assert_eq!(live_sessions(&home).len(), 1, "it stays for its job");
    let mut watcher = service.client();
    watcher.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    watcher.done(json!({"type": "watch_sessions"}));
    go(&home);
    watcher.until("the session out of memory", |event| {
        event["type"] == "session_changed" && event["session"]["live"] == false
    });
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": id}));
    let messages = client.done(json!({"type": "get_messages"}));
    let last = messages["messages"].as_array().unwrap().last().unwrap().clone();
    assert_says(&text(&last), &["Job bg-1 exited with code 0", "the result"]);
    client.prompt("And?");
    assert_says(&all(model.requests().last().unwrap()), &["the result", "And?"]);
}

#[test]
fn rules_and_the_sandboxed_gate_see_it_as_a_plain_command() {
    let model = calls(vec![in_background("touch made"), in_background("true")]);
    let rule = json!({"tool": "bash", "command": "touch *", "action": "deny"});
    let home = home(&model, json!({"permissions": {"preset": "full", "rules": [rule]}}));
    let mut daemon = Daemon::start(&home, &[]);
    let said = results(&daemon.prompt("Go."));
    assert_says(&said[0], &["Permission denied"]);
    assert_says(&said[1], &["Backgrounded as job bg-1"]);
    assert!(!home.project().join("made").exists());
}

#[test]
fn without_the_setting_nothing_differs() {
    let model =
        calls(vec![("bash", json!({"command": "echo plain", "async": true, "name": 5, "ready": "x"}))]);
    let home = Home::with_model(&model);
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(results(&daemon.prompt("Go.")), ["plain\n"]);
    let tools = daemon.done(json!({"type": "get_tools"}));
    let of_bash = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "bash").unwrap();
    let names: Vec<&String> = of_bash["parameters"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["command", "timeout"]);
    assert!(!tools.to_string().contains("\"wait\""));
}
