//! Services: jobs with a name that say when they are ready; and commands that become jobs because they take long.

use std::{fs, net::TcpListener};

use agentd_e2e::{DEADLINE, Daemon, Service, ctl, processes};
use serde_json::{Value, json};

use crate::{
    async_jobs::{calls, go, home, in_background, pids, pipe, results},
    support::{assert_says, ended, text},
};

fn service(command: &str, name: &str, ready: Value) -> (&'static str, Value) {
    ("bash", json!({"command": command, "async": true, "name": name, "ready": ready}))
}

#[test]
fn the_call_of_a_service_returns_when_a_line_says_that_it_is_ready() {
    let script = "echo booting; echo up > up; cat go > /dev/null; printf 'Listening on 30'; printf '00\\n'; sleep 1000";
    let model = calls(vec![
        service(script, "web", json!({"log": "^Listening on \\d+$"})),
        ("wait", json!({})),
        ("read", json!({"path": "proc://web"})),
    ]);
    let home = home(&model, json!({}));
    let up = pipe(&home, "up");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.event("job_start");
    assert_eq!(fs::read_to_string(up).unwrap(), "up\n");
    let listed = daemon.done(json!({"type": "list_jobs"}));
    let job = &listed["jobs"][0];
    assert_eq!((&job["kind"], &job["name"]), (&json!("service"), &json!("web")), "{listed}");
    go(&home);
    let events = daemon.settled();
    let said = results(&events);
    assert!(said[0].starts_with("Service web (job bg-1) is ready after "), "{}", said[0]);
    assert_says(&said[0], &["\n\nbooting\nListening on 3000"]);
    let details = &ended(&events, "toolResult")[0]["details"]["async"];
    assert_eq!(details, &json!({"state": "running", "jobId": "bg-1", "type": "service", "name": "web"}));
    assert_eq!(said[1], "Nothing to wait for. Services run until they are ended.");
    assert_says(&said[2], &["Service web (job bg-1) is running for ", "Listening on 3000"]);
}

#[test]
fn a_port_shows_it_too_and_one_that_is_taken_is_refused() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let model = calls(vec![
        service("echo up > up; sleep 1000", "web", json!({"port": free})),
        service("sleep 1000", "other", json!({"port": taken.local_addr().unwrap().port()})),
    ]);
    let home = home(&model, json!({}));
    let up = pipe(&home, "up");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    assert_eq!(fs::read_to_string(up).unwrap(), "up\n");
    let _listener = TcpListener::bind(("127.0.0.1", free)).unwrap();
    let said = results(&daemon.settled());
    assert!(said[0].starts_with("Service web (job bg-1) is ready after "), "{}", said[0]);
    assert_says(&said[1], &["is taken already"]);
    assert_eq!(daemon.done(json!({"type": "list_jobs"}))["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_service_that_fails_or_does_not_get_ready_says_so_once() {
    let model = calls(vec![
        service("echo oops; exit 7", "web", json!({"log": "ready"})),
        service("echo slow; sleep 1000", "web", json!({"log": "ready", "timeout": 0.3})),
        ("bash", json!({"command": "true", "async": true, "ready": {"log": "("}})),
        ("bash", json!({"command": "true", "name": "a b"})),
        ("bash", json!({"command": "true", "async": false, "name": "web"})),
    ]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let said = results(&events);
    assert!(said[0].starts_with("Service web (job bg-1) exited with code 7 after "), "{}", said[0]);
    assert_says(&said[0], &["before it was ready.\n\noops"]);
    assert_says(&said[1], &["Service web (job bg-2) runs, but was not ready within 0.3 seconds", "\n\nslow"]);
    for (result, failed) in ended(&events, "toolResult").iter().zip(0..) {
        assert_eq!(result["isError"], true, "{failed}: {result}");
    }
    assert_says(&said[2], &["Invalid ready.log"]);
    assert_says(&said[3], &["Invalid name: \"a b\""]);
    assert_says(&said[4], &["need async: true"]);
    assert!(
        !events.iter().any(|event| event["message"]["customType"] == "agentd.job"),
        "the call has told it"
    );
}

#[test]
fn a_service_takes_the_place_of_the_one_of_its_name() {
    let script = "(trap '' TERM; sleep 1001) & echo pid $!; echo pid $$; echo ready; wait";
    let model = calls(vec![
        service(script, "web", json!({"log": "ready"})),
        ("bash", json!({"command": "cat go"})),
        service(script, "web", json!({"log": "ready"})),
    ]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("the second call", |event| {
        event["type"] == "tool_execution_start" && event["toolCallId"] == "c1"
    });
    let old = processes::watch(&pids(&mut daemon, "web", 2));
    go(&home);
    let events = daemon.settled();
    assert_says(
        &results(&events)[1],
        &["Service web (job bg-2) is ready after ", "It takes the place of bg-1, which was ended."],
    );
    old.assert_gone_within(DEADLINE);
    let jobs = daemon.done(json!({"type": "list_jobs"}));
    let states: Vec<&Value> = jobs["jobs"].as_array().unwrap().iter().map(|job| &job["status"]).collect();
    assert_eq!(states, ["aborted", "running"]);
    assert!(
        !events.iter().any(|event| event["message"]["customType"] == "agentd.job"),
        "the call has told it"
    );
    let processes = processes::watch(&pids(&mut daemon, "web", 2));
    // What ignores SIGTERM is killed after the answer.
    daemon.done(json!({"type": "abort", "scope": "all"}));
    processes.assert_gone_within(DEADLINE);
}

#[test]
fn a_command_that_takes_long_becomes_a_job() {
    let model = calls(vec![
        ("bash", json!({"command": "echo quick"})),
        ("bash", json!({"command": "echo first; cat go; echo second; exit 4"})),
    ]);
    let home = home(&model, json!({"bash": {"autoBackground": {"thresholdMs": 1000}}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Go.");
    let said = results(&events);
    assert_eq!(said[0], "quick\n");
    assert_eq!(
        said[1],
        "Backgrounded as job bg-1; result will be delivered automatically.\n\nOutput so far:\nfirst\n"
    );
    go(&home);
    let told = daemon.until("the message", |event| {
        event["type"] == "message_end" && event["message"]["customType"] == "agentd.job"
    });
    assert_says(&text(&told["message"]), &["Job bg-1 exited with code 4 after ", "\n\nfirst\nsecond"]);
    let output = daemon.done(json!({"type": "job_output", "jobId": "bg-1", "offset": 0}));
    assert_eq!((&output["output"], &output["eof"]), (&json!("first\nsecond\n"), &json!(true)));
}

#[test]
fn what_such_a_job_leaves_is_ended_with_it() {
    // The shell ends at SIGTERM, and what it started does not.
    let script =
        "(trap '' TERM; sleep 1001) & echo pid $!; (trap '' TERM; exec sleep 1002) & echo pid $!; wait";
    let model = calls(vec![("bash", json!({"command": script}))]);
    let home = home(&model, json!({"bash": {"autoBackground": {"thresholdMs": 500}}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 2));
    let killed = daemon.done(json!({"type": "kill_job", "jobId": "bg-1"}));
    assert_eq!(killed["status"], "aborted", "{killed}");
    watched.assert_gone_within(std::time::Duration::ZERO);
}

#[test]
fn until_then_it_is_a_call_like_any_other() {
    let script = "echo pid $$; sleep 1000";
    let model = calls(vec![("bash", json!({"command": script}))]);
    let home = home(&model, json!({"bash": {"autoBackground": {"thresholdMs": 600_000}}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    let update = daemon.until("its output", |line| {
        line["type"] == "tool_execution_update" && line["partialResult"]["content"] != json!([])
    });
    let pid = text(&update["partialResult"]).trim().strip_prefix("pid ").unwrap().parse().unwrap();
    let watched = processes::watch(&[pid]);
    daemon.done(json!({"type": "abort"}));
    watched.assert_gone_within(DEADLINE);
    let messages = daemon.done(json!({"type": "get_messages"})).to_string();
    assert_says(&messages, &["Command aborted"]);
    assert_eq!(daemon.done(json!({"type": "list_jobs"}))["jobs"], json!([]));
}

#[test]
fn agentctl_lists_prints_and_ends_jobs() {
    let model = calls(vec![in_background("echo one; echo two; sleep 1000")]);
    // agentctl has jobs unasked.
    let home = agentd_e2e::Home::with_model(&model);
    let service = Service::start(&home, &[]);
    let none = ctl::run(&home, &["jobs", "list"]);
    assert_says(&none.stderr, &["There is no job."]);
    let said = ctl::run(&home, &["prompt", "Go."]);
    assert_eq!(said.stdout.trim(), "Ok.", "{said:?}");
    let listed = ctl::run(&home, &["jobs", "list"]);
    assert_says(&listed.stdout, &["JOB", "bg-1", "process", "is running", "echo one; echo two"]);
    let json: Value = serde_json::from_str(&ctl::run(&home, &["jobs", "list", "--json"]).stdout).unwrap();
    assert_eq!(json["jobs"][0]["id"], "bg-1");
    let output = ctl::run(&home, &["jobs", "output", "bg-1", "--all"]);
    assert_eq!(output.stdout, "one\ntwo\n");
    let killed = ctl::run(&home, &["jobs", "kill", "bg-1"]);
    assert_says(&killed.stderr, &["bg-1 was stopped."]);
    let unknown = ctl::run(&home, &["jobs", "output", "bg-9"]);
    assert_says(&unknown.stderr, &["no live session has a job \"bg-9\""]);
    drop(service);
}

#[test]
fn commands_can_be_kept_from_asking_and_paging() {
    let show = "echo $PAGER $GIT_PAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT $TERM $NO_COLOR $CI";
    let model = calls(vec![("bash", json!({"command": show})), in_background(show), ("wait", json!({}))]);
    let home = home(&model, json!({"bash": {"nonInteractive": true}}));
    let events = Daemon::start(&home, &[]).prompt("Go.");
    assert_eq!(results(&events)[0], "cat cat true 0 dumb 1 true\n");
    let told = events.iter().find(|event| event["message"]["customType"] == "agentd.job").expect("a message");
    assert_says(&text(&told["message"]), &["\n\ncat cat true 0 dumb 1 true"]);
}
