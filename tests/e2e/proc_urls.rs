//! `proc://` in `read` and `write`: the state of jobs, their input, their end, and who may.

use std::cell::Cell;

use agentd_e2e::{Daemon, MockServer, Reply, processes, sse};
use serde_json::{Value, json};

use crate::{
    async_jobs::{calls, home, in_background, pids, results},
    support::assert_says,
};

fn read(path: &str) -> (&'static str, Value) {
    ("read", json!({"path": path}))
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

const SERVER: &str = "echo ready; while read -r line; do echo \"got $line\"; done; echo bye; exit 3";

#[test]
fn a_job_is_looked_at_spoken_to_and_ended() {
    let model = calls(vec![
        read("proc://"),
        in_background(SERVER),
        write("proc://bg-1", "hello\n"),
        ("bash", json!({"command": "sleep 1000", "async": true, "name": "db"})),
        read("proc://"),
        write("proc://bg-1/eof", "last\n"),
        ("wait", json!({})),
        read("proc://bg-1"),
        read("proc://bg-1:1-2"),
        write("proc://db/kill", ""),
        write("proc://bg-1", "more"),
        read("proc://bg-9"),
        read("proc://bg-1/kill"),
        write("proc://db/pause", ""),
    ]);
    let home = home(&model, json!({}));
    let said = results(&Daemon::start(&home, &[]).prompt("Go."));
    assert_eq!(said[0], "This session has no jobs.\n");
    assert_eq!(said[2], "Wrote 6 bytes to bg-1");
    assert_says(
        &said[4],
        &["bg-1 is running for ", "bytes of output: echo ready;", "\nbg-2 (db) is running for "],
    );
    assert_eq!(said[5], "Wrote 5 bytes to bg-1 and ended its input");
    assert_says(
        &said[7],
        &[
            "Job bg-1 exited with code 3 after ",
            "Output from the beginning: artifact://",
            "\nready\ngot hello\ngot last\nbye\n",
        ],
    );
    assert!(
        said[8].starts_with("Job bg-1 exited") && said[8].contains(&format!("\n$ {SERVER}\n")),
        "{}",
        said[8]
    );
    assert_says(&said[9], &["bg-2 was ended by SIGTERM after "]);
    assert_says(&said[10], &["bg-1 has ended already: it exited with code 3."]);
    assert_says(&said[11], &["The session has no job \"bg-9\"; there are: bg-1, bg-2."]);
    assert_says(&said[12], &["cannot be read. Read proc://bg-1"]);
    assert_says(&said[13], &["Unknown: proc://db/pause"]);
    assert!(!home.project().join("proc:").exists());
}

#[test]
fn the_permissions_of_processes_count() {
    let model = calls(vec![
        in_background("cat"),
        write("proc://bg-1/kill", ""),
        write("proc://bg-1", "x\n"),
        read("proc://bg-1"),
    ]);
    let rules = json!([
        {"tool": "bash", "action": "allow"},
        {"tool": "process_input", "action": "allow"},
    ]);
    let home = home(&model, json!({"permissions": {"preset": "read-only", "rules": rules}}));
    let mut daemon = Daemon::start(&home, &[]);
    let said = results(&daemon.prompt("Go."));
    assert_says(&said[1], &["Permission denied", "the preset read-only refuses the tool process_kill"]);
    assert_eq!(said[2], "Wrote 2 bytes to bg-1");
    assert_says(&said[3], &["Job bg-1 is running"]);
}

#[test]
fn plan_mode_lets_look_and_nothing_else() {
    let model = MockServer::start([
        Reply::stream(sse::calls(&[(
            "c1",
            "bash",
            json!({"command": "echo pid $$; sleep 1000", "async": true}),
        )])),
        Reply::stream(sse::answer("Ok.")),
        Reply::stream(sse::calls(&[
            ("c2", "write", json!({"path": "proc://bg-1/kill", "content": ""})),
            ("c3", "write", json!({"path": "proc://bg-1", "content": "x"})),
            ("c4", "read", json!({"path": "proc://bg-1"})),
            ("c5", "wait", json!({})),
        ])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.prompt("Go.");
    let watched = processes::watch(&pids(&mut daemon, "bg-1", 1));
    daemon.done(json!({"type": "set_mode", "mode": "plan"}));
    daemon.send(&json!({"type": "prompt", "message": "Look."}));
    // The calls work side by side.
    let (looked, waits) = (Cell::new(false), Cell::new(false));
    daemon.until("the end of the look, and the wait", |event| {
        looked.set(looked.get() || (event["type"] == "tool_execution_end" && event["toolCallId"] == "c4"));
        waits.set(waits.get() || (event["type"] == "tool_execution_start" && event["toolCallId"] == "c5"));
        looked.get() && waits.get()
    });
    assert!(watched.all_alive());
    daemon.done(json!({"type": "kill_job", "jobId": "bg-1"}));
    let said = results(&daemon.settled());
    assert_says(&said[0], &["plan mode refuses the tool write"]);
    assert_says(&said[1], &["plan mode refuses the tool write"]);
    assert_says(&said[2], &["Job bg-1 is running"]);
    assert_says(&said[3], &["bg-1 has ended: it was stopped"]);
}
