//! kill -9 at bad moments: nothing is left running, nothing that was told is lost.

use std::{fs, time::Duration};

use agentd_e2e::{Daemon, Home, MockServer, Reply, processes, sse};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{prompt, records, roles, text};

/// How long what the daemon started may outlive it.
const AFTERLIFE: Duration = Duration::from_secs(1);

#[test]
fn kill_in_the_middle_of_a_tool_call() {
    // A child, a background child, one with a session of its own, one whose parent is gone.
    let script = "sleep 1001 & echo pid $!; setsid sleep 1002 & echo pid $!; \
                  (setsid bash -c 'sleep 1003 & echo pid $!; disown; exit' &); nohup sleep 1004 >/dev/null 2>&1 & echo pid $!; \
                  echo pid $$; wait";
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script}))])),
        Reply::stream(sse::answer("Here again.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let mut ids: Vec<i32> = Vec::new();
    while ids.len() < 5 {
        let update = daemon.event("tool_execution_update");
        let output = text(&update["partialResult"]);
        ids = output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
    }
    let children = processes::watch(&ids);
    assert!(children.all_alive());
    daemon.signal(Signal::KILL);
    children.assert_gone_within(AFTERLIFE);
    drop(daemon);

    // What was told is there, and the conversation goes on: the open call is answered for the model.
    let file = &home.session_files()[0];
    assert_eq!(roles(file), ["system", "user", "assistant"]);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let events = daemon.prompt("Still there?");
    assert_eq!(text(crate::support::answers(&events)[0]), "Here again.");
    let requests = server.requests();
    let roles: Vec<_> =
        requests[1].messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
}

#[test]
fn kill_while_an_answer_streams() {
    let server = MockServer::start([
        Reply::stream(sse::answer("First.")),
        Reply::stream(sse::text("Second, half")).hang(),
        Reply::stream(sse::answer("Third.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    daemon.send(&prompt("Two."));
    daemon.event("message_update");
    daemon.signal(Signal::KILL);
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.prompt("Three.");
    let requests = server.requests();
    let said: Vec<String> = requests[2].messages()[1..].iter().map(text).collect();
    assert_eq!(said, ["One.", "First.", "Two.", "Three."]);
}

#[test]
fn background_processes_end_with_the_session() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[(
            "c1",
            "bash",
            json!({"command": "setsid sleep 1000 >/dev/null 2>&1 & echo pid $!"}),
        )])),
        Reply::stream(sse::answer("Left it running.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let output = text(crate::support::ended(&events, "toolResult")[0]);
    let id = output.lines().find_map(|line| line.strip_prefix("pid ")?.parse().ok()).expect("a process id");
    let background = processes::watch(&[id]);
    assert!(background.all_alive(), "a finished command's background process goes on");
    assert!(daemon.close().status.success());
    background.assert_gone_within(AFTERLIFE);
}

/// However a write was cut short, what was complete before is there, and the next entry is whole.
#[test]
fn a_session_file_cut_anywhere_opens() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    daemon.prompt("Two.");
    drop(daemon);
    let whole = fs::read(&home.session_files()[0]).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let total = whole.len();
    let file = home.root().join("cut.jsonl");
    // Each line's edges, its middle, and the last line byte by byte in steps; every byte is tried beside the code.
    let mut cuts: Vec<usize> = Vec::new();
    let mut begin = header;
    for end in (header..total).filter(|at| whole[*at] == b'\n') {
        cuts.extend([begin, begin + 1, usize::midpoint(begin, end), end, end + 1]);
        begin = end + 1;
    }
    for cut in cuts {
        fs::write(&file, &whole[..cut]).unwrap();
        let complete =
            whole[..cut].split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).count();
        let parses_without_end = serde_json::from_slice::<serde_json::Value>(
            whole[..cut].rsplit(|byte| *byte == b'\n').next().unwrap_or_default(),
        )
        .is_ok();
        let mut daemon = Daemon::start(&home, &["--session", file.to_str().unwrap()]);
        let entries = daemon.done(json!({"type": "get_entries"}));
        let entries = entries["entries"].as_array().unwrap().len();
        let expected = complete - 1 + usize::from(parses_without_end);
        // Opening may add an entry of its own: the thinking level of a branch that has none.
        assert!(
            (expected..=expected + 2).contains(&entries),
            "cut at {cut} of {total}: {entries} entries, {expected} expected"
        );
        daemon.prompt("Go on.");
        drop(daemon);
        let text = fs::read_to_string(&file).unwrap();
        let torn =
            text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_err()).count();
        assert!(torn <= 1, "cut at {cut}: a whole line was damaged\n{text}");
        assert!(text.ends_with('\n'));
    }
}

#[test]
fn a_kill_right_after_message_end_loses_nothing() {
    let server = MockServer::always(Reply::stream(sse::answer("Kept.")));
    for _ in 0..5 {
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &[]);
        daemon.send(&prompt("Go."));
        daemon.until("the answer's end", |line| {
            line["type"] == "message_end" && line["message"]["role"] == "assistant"
        });
        daemon.signal(Signal::KILL);
        drop(daemon);
        let last = records(&home.session_files()[0]).pop().expect("a last entry");
        assert_eq!(text(&last["message"]), "Kept.");
    }
}

/// Without the process that starts commands, commands still work, and what runs can still be stopped.
#[test]
fn a_killed_guard_is_replaced() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&json!({"id": "long", "type": "bash", "command": "echo $$; sleep 1000"}));
    let update = daemon.event("bash_execution_update");
    let shell = update["delta"].as_str().unwrap().trim().parse().expect("a process id");
    let running = processes::watch(&[shell]);
    let guards = processes::children(daemon.id());
    assert_eq!(guards.len(), 1, "one guard starts all commands");
    let guard = processes::watch(&guards);
    processes::signal(guards[0].unsigned_abs(), Signal::KILL);
    guard.assert_gone_within(agentd_e2e::DEADLINE);
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo again"}))["output"], "again\n");
    assert!(running.all_alive());
    daemon.done(json!({"type": "abort_bash"}));
    running.assert_gone_within(AFTERLIFE);
}

/// A full disk ends the run that cannot be stored, with the reason; what was stored is whole, and the daemon lives on.
#[test]
fn a_file_that_cannot_grow() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut command = home.command("/bin/bash");
    // In blocks of a kilobyte; the signal would end the process where a full disk gives an error.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$AGENTD\" --stdio";
    command.args(["-c", script]).env("AGENTD", agentd_e2e::binaries::agentd());
    let mut daemon = Daemon::start_command(command);
    let mut failure = None;
    for _ in 0..20 {
        let events = daemon.prompt(&"w".repeat(2000));
        let end = events.iter().rev().find(|event| event["type"] == "message_end").expect("a message");
        if let Some(message) = end["message"]["errorMessage"].as_str() {
            failure = Some(message.to_owned());
            break;
        }
    }
    let failure = failure.expect("40 kB do not fit into 16");
    let file = home.session_files()[0].clone();
    crate::support::assert_says(&failure, &[&file.display().to_string(), "too large"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
    // Every line of the file is whole.
    assert!(records(&file).len() > 3);
}
