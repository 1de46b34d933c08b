//! `kill -9` at bad moments, and bugs in the daemon: nothing is left running, nothing acknowledged is lost, and the
//! breakdown of one session does not affect the others.

use std::fs;

use agentd_e2e::{DEADLINE, Daemon, Gate, Home, MockServer, Reply, Service, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, prompt, records, roles, text};

#[test]
fn kill_in_the_middle_of_a_tool_call() {
    // A child, a background child, one with a session of its own, one whose parent has ended.
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
    children.assert_gone_within(DEADLINE);
    drop(daemon);

    // Everything acknowledged is there, and the conversation goes on: the open call has a result for the model.
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
    background.assert_gone_within(DEADLINE);
}

/// Wherever a write was cut short, the entries before are complete and the next entry is on a line of its own.
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
    // Cuts at the edges and the middle of each line, and in steps through the last one; a unit test tries every byte.
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
        // Opening may add an entry: the thinking level of a branch without one.
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

/// After the guard is killed, commands still start, and running ones can still be stopped.
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
    running.assert_gone_within(DEADLINE);
}

/// A full disk ends the run that cannot be stored, with the reason; stored entries are complete, and the daemon lives on.
#[test]
fn a_file_that_cannot_grow() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut command = home.command("/bin/bash");
    // `ulimit -f` counts kilobytes; without the trap, the signal would end the process where a full disk returns an error.
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
    // Every line of the file is complete.
    assert!(records(&file).len() > 3);
}

/// A daemon that panics at a fail point.
fn armed(home: &Home, args: &[&str], points: &str) -> Daemon {
    Daemon::start_with(home, args, |command| {
        command.env("AGENTD_FAIL_POINTS", points).env("RUST_BACKTRACE", "0");
    })
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["type"].as_str()).collect()
}

/// Each `_start` event has its `_end`, in the right order.
fn assert_is_whole(lines: &[Value]) {
    let mut open: Vec<String> = Vec::new();
    for line in lines {
        let kind = line["type"].as_str().expect("a type");
        let name = match kind.rsplit_once('_') {
            Some((name @ "tool_execution", _)) => format!("{name} {}", line["toolCallId"]),
            Some((name, _)) => name.to_owned(),
            None => continue,
        };
        if kind.ends_with("_start") {
            open.push(name);
        } else if kind.ends_with("_end") {
            let at = open.iter().rposition(|open| *open == name);
            open.remove(at.unwrap_or_else(|| panic!("{kind} without a start: {:?}", kinds(lines))));
        }
    }
    assert_eq!(open, [""; 0], "{:?}", kinds(lines));
}

fn last_answer(lines: &[Value]) -> &Value {
    let ended = lines.iter().rev().find(|line| line["type"] == "message_end");
    &ended.expect("an answer")["message"]
}

fn roles_of(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["role"].as_str()).collect()
}

fn stored(daemon: &mut Daemon) -> Vec<Value> {
    let messages = daemon.done(json!({"type": "get_messages"}));
    messages["messages"].as_array().expect("a list").clone()
}

/// A panic in the middle of an answer: the received part is kept, and the next prompt works.
#[test]
fn a_run_that_breaks_down_in_an_answer_is_closed() {
    for args in [&[][..], &["--no-session"]] {
        let server = MockServer::start([
            Reply::stream(sse::answer("Never told whole.")),
            Reply::stream(sse::answer("All is well.")),
        ]);
        let home = Home::with_model(&server);
        let mut daemon = armed(&home, args, "run.delta:panic");
        let lines = daemon.prompt("Go.");
        assert_is_whole(&lines);
        let answer = last_answer(&lines);
        assert_eq!(answer["role"], "assistant");
        let reason = answer["stopReason"].as_str().expect("a reason");
        assert!(matches!(reason, "aborted" | "error"), "{answer}");
        assert!(answer["errorMessage"].is_string(), "{answer}");
        assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
        let lines = daemon.prompt("Again.");
        assert_is_whole(&lines);
        assert_eq!(text(last_answer(&lines)), "All is well.");
        assert_eq!(roles_of(&stored(&mut daemon)), ["system", "user", "assistant", "user", "assistant"]);
        assert!(daemon.close().status.success());
    }
}

/// A panic before tool calls: each call gets a true result, and its end is reported.
#[test]
fn a_run_that_breaks_down_before_its_calls_has_results_of_them() {
    let calls = [("c1", "bash", json!({"command": "true"})), ("c2", "bash", json!({"command": "true"}))];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("All is well."))]);
    let home = Home::with_model(&server);
    let mut daemon = armed(&home, &[], "run.tool_started:panic");
    let lines = daemon.prompt("Go.");
    assert_is_whole(&lines);
    assert_says(last_answer(&lines)["errorMessage"].as_str().expect("an error"), &["agentd", "bug", "log"]);
    let messages = stored(&mut daemon);
    assert_eq!(roles_of(&messages), ["system", "user", "assistant", "toolResult", "toolResult", "assistant"]);
    for result in messages.iter().filter(|message| message["role"] == "toolResult") {
        assert!(text(result).starts_with("interrupted by a crash; it "), "{result}");
    }
    let told = lines.iter().find(|line| line["type"] == "agent_end").expect("an end");
    assert_eq!(told["messages"].as_array().expect("a list").len(), messages.len());
    let lines = daemon.prompt("Again.");
    assert_eq!(text(last_answer(&lines)), "All is well.");
    assert!(daemon.close().status.success());
    // Crash recovery has nothing to do.
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(stored(&mut daemon).len(), messages.len() + 2);
    assert!(daemon.close().status.success());
}

/// A panic of the session's own task: its clients are told, the daemon and its other sessions go on, and the session opens
/// again.
#[test]
fn a_session_that_breaks_down_says_so_and_opens_again() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Wait")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::answer("Not stored.")),
        Reply::stream(sse::answer("All is well.")),
    ]);
    let home = Home::with_model(&server);
    // Writes one to three: the system and user message of one session, and the system message of the other.
    let service = Service::start_with(&home, &[], |command| {
        command.env("AGENTD_FAIL_POINTS", "session.stored@5:panic").env("RUST_BACKTRACE", "0");
    });
    let open = |name: &str| {
        let mut client = service.client();
        let hello = json!({"type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": {"sessions": true}});
        client.done(hello);
        let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
        (client, opened["sessionId"].as_str().expect("an id").to_owned())
    };
    let ((mut other, at_work), (mut client, id)) = (open("other"), open("client"));
    other.done(prompt("One."));
    other.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    client.send(&json!({"id": "p", "type": "prompt", "message": "Two."}));
    let lines = client.all_until("the end of the session", |line| line["type"] == "session_closed");
    let of_run: Vec<Value> = lines.iter().filter(|line| line["sessionId"] == json!(id)).cloned().collect();
    assert_is_whole(&of_run);
    assert!(kinds(&lines).contains(&"agent_settled"), "{:?}", kinds(&lines));
    let error = last_answer(&lines)["errorMessage"].as_str().expect("an error").to_owned();
    assert_says(&error, &["session broke down", "log", "Open it again"]);
    // The other session is unaffected.
    gate.open();
    let lines = other.settled();
    assert_eq!(text(last_answer(&lines)), "Wait");
    assert_eq!(lines.iter().filter(|line| line["type"] == "session_closed").count(), 0);
    let state = other.done(json!({"type": "get_state"}));
    assert_eq!((&state["sessionId"], &state["isStreaming"]), (&json!(at_work), &json!(false)));
    // Stored entries are there, and crash recovery completes the rest.
    client.done(json!({"type": "attach_session", "sessionId": id}));
    let lines = client.prompt("Again.");
    assert_eq!(text(last_answer(&lines)), "All is well.");
}
