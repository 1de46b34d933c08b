//! Messages sent while a run is on: steering, follow-ups, taking them back, and a `kill -9` while they wait.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, ended, holds_nothing, prompt, text};

fn said(server: &MockServer, request: usize) -> Vec<String> {
    server.requests()[request].messages()[1..].iter().map(text).collect()
}

/// A run whose first answer calls a tool after the gate opens.
fn tool_run(gate: &Gate, more: &[&str]) -> MockServer {
    let call = sse::calls(&[("c1", "bash", json!({"command": "echo tool"}))]);
    let server = MockServer::start([Reply::stream(sse::text("Hm.")).gate(gate).then(call)]);
    more.iter().for_each(|words| server.push(Reply::stream(sse::answer(words))));
    server
}

#[test]
fn steering_comes_after_the_tools_and_follow_ups_at_the_end() {
    let gate = Gate::new();
    let server = tool_run(&gate, &["Steered.", "Followed."]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    assert_eq!(daemon.done(json!({"type": "follow_up", "message": "And then?"}))["disposition"], "queued");
    assert_eq!(daemon.done(json!({"type": "steer", "message": "Left!"}))["disposition"], "queued");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 2);
    gate.open();
    let events = daemon.settled();
    let users: Vec<String> = ended(&events, "user").into_iter().map(text).collect();
    assert_eq!(users, ["Left!", "And then?"]);
    assert_eq!(said(&server, 1), ["Go.", "Hm.", "tool\n", "Left!"]);
    assert_eq!(said(&server, 2), ["Go.", "Hm.", "tool\n", "Left!", "Steered.", "And then?"]);
    // Each message leaves the queue right before it begins.
    let starts: Vec<usize> = (0..events.len())
        .filter(|i| events[*i]["message"]["role"] == "user" && events[*i]["type"] == "message_start")
        .collect();
    for start in starts {
        assert_eq!(events[start - 1]["type"], "queue_update");
    }
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 0);
}

#[test]
fn a_prompt_while_streaming_has_to_say_where_it_goes() {
    let gate = Gate::new();
    let server = tool_run(&gate, &["One.", "Two."]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    let refused = daemon.refused(json!({"type": "prompt", "message": "Me too."}));
    assert_eq!(
        refused["error"],
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    for behaviour in ["followUp", "steer"] {
        let command = json!({"type": "prompt", "message": behaviour, "streamingBehavior": behaviour});
        assert_eq!(daemon.done(command)["disposition"], "queued");
    }
    gate.open();
    let events = daemon.settled();
    let users: Vec<String> = ended(&events, "user").into_iter().map(text).collect();
    assert_eq!(users, ["steer", "followUp"]);
}

#[test]
fn modes_decide_how_many_are_delivered() {
    for (mode, expected) in [("one-at-a-time", vec![vec!["a"], vec!["b"]]), ("all", vec![vec!["a", "b"]])] {
        let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        daemon.done(json!({"type": "set_follow_up_mode", "mode": mode}));
        for message in ["a", "b"] {
            daemon.done(json!({"type": "follow_up", "message": message}));
        }
        daemon.prompt("Go.");
        let requests = server.requests();
        let new: Vec<Vec<String>> = requests[1..]
            .iter()
            .map(|request| {
                let users = request.messages().iter().rev().take_while(|message| message["role"] == "user");
                let mut users: Vec<String> = users.map(text).collect();
                users.reverse();
                users
            })
            .collect();
        assert_eq!(new, expected, "{mode}");
        // The mode is saved for later sessions.
        drop(daemon);
        let mut later = Daemon::start(&home, &["--no-session"]);
        assert_eq!(later.done(json!({"type": "get_state"}))["followUpMode"], mode);
    }
}

#[test]
fn queued_messages_survive_an_abort_and_can_be_taken_back() {
    let server =
        MockServer::start([Reply::stream(sse::text("Hm.")).hang(), Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    daemon.done(json!({"type": "follow_up", "message": "Later."}));
    daemon.done(json!({"type": "abort"}));
    daemon.settled();
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 1);
    let cleared = daemon.done(json!({"type": "clear_queue"}));
    assert_eq!(cleared, json!({"steering": [], "followUp": ["Later."]}));
    daemon.prompt("Again.");
    let said = said(&server, 1);
    assert!(!said.contains(&"Later.".to_owned()), "{said:?}");
}

#[test]
fn a_prompt_right_after_the_end_is_taken() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for kind in ["agent_end", "agent_settled", "agent_end", "agent_settled"] {
        let accepted = |line: &Value| line["type"] == "response" && line["command"] == "prompt";
        daemon.send(&prompt("Go."));
        let response = daemon.until("the response", accepted);
        assert_eq!(response["data"]["disposition"], "started", "after {kind}: {response}");
        daemon.event(kind);
        if kind == "agent_settled" {
            let state = daemon.done(json!({"type": "get_state"}));
            assert_eq!((&state["isStreaming"], &state["pendingMessageCount"]), (&json!(false), &json!(0)));
        }
    }
}

fn intent_log(home: &Home) -> PathBuf {
    home.session_files()[0].with_extension("ledger")
}

fn armed(home: &Home, args: &[&str], points: &str) -> Daemon {
    Daemon::start_with(home, args, |command| {
        command.env("AGENTD_FAIL_POINTS", points);
    })
}

/// The user messages in the session file.
fn said_in_file(home: &Home) -> Vec<String> {
    // One of these crashes leaves a torn line.
    let content = fs::read_to_string(&home.session_files()[0]).expect("a session file");
    let records = content.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = records.map(|record| record["message"].clone());
    messages.filter(|message| message["role"] == "user").map(|message| text(&message)).collect()
}

fn steer(message: &str) -> Value {
    json!({"type": "steer", "message": message, "requestKey": format!("key of {message}")})
}

fn follow_up(message: &str) -> Value {
    json!({"type": "follow_up", "message": message})
}

fn waiting(daemon: &mut Daemon) -> Value {
    daemon.done(json!({"type": "get_state"}))["pendingMessageCount"].clone()
}

fn fine() -> Reply {
    Reply::stream(sse::answer("Fine."))
}

/// A model that never answers its first request, and answers all others.
fn server() -> MockServer {
    MockServer::start([Reply::stream(sse::text("Well ")).hang(), fine(), fine(), fine(), fine()])
}

/// Queues these messages behind a run, and kills the daemon.
fn killed_with(home: &Home, messages: &[Value]) {
    let mut daemon = Daemon::start(home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    for message in messages {
        daemon.done(message.clone());
    }
    daemon.signal(Signal::KILL);
    daemon.wait();
}

#[test]
fn queued_messages_are_queued_again_and_delivered_once() {
    let server = server();
    let home = Home::with_model(&server);
    killed_with(&home, &[follow_up("Then this."), steer("Not so fast."), steer("Not so fast at all.")]);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 3);
    let found = daemon.done(json!({"type": "get_diagnostics"})).to_string();
    assert_says(
        &found,
        &["3 messages that waited in queues when the daemon was killed wait again", "clear_queue"],
    );
    // Sending it again does not queue it twice.
    daemon.done(steer("Not so fast."));
    assert_eq!(waiting(&mut daemon), 3);
    daemon.signal(Signal::KILL);
    daemon.wait();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 3);
    daemon.prompt("And now?");
    let all = ["Go.", "And now?", "Not so fast.", "Not so fast at all.", "Then this."];
    assert_eq!(said_in_file(&home), all);
    daemon.done(steer("Not so fast."));
    assert_eq!(waiting(&mut daemon), 0, "its key is that of an entry now");
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
    let asked = server.requests().last().expect("a request").body.to_string();
    assert_says(&asked, &all);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 0);
}

/// The daemon dies before, during, and after the write of the message's entry.
#[test]
fn a_message_that_is_being_delivered_is_there_once() {
    // Three entries come before; then the first queued message, and the second.
    for point in [
        "store.append@4",
        "store.append@4:torn",
        "store.appended@4",
        "intent_log.outcome_written",
        "store.append@6",
    ] {
        let gate = Gate::new();
        let first = Reply::stream(sse::text("Well ")).gate(&gate).then(sse::answer("then."));
        let server = MockServer::start([first, fine(), fine(), fine(), fine(), fine()]);
        let home = Home::with_model(&server);
        let mut daemon = armed(&home, &[], point);
        daemon.send(&prompt("Go."));
        daemon.event("message_update");
        for message in ["one", "two"] {
            daemon.done(steer(message));
        }
        gate.open();
        daemon.wait();
        let mut daemon = Daemon::start(&home, &["--continue"]);
        daemon.prompt("And now?");
        let mut all = said_in_file(&home);
        all.sort();
        assert_eq!(all, ["And now?", "Go.", "one", "two"], "{point}");
        assert_eq!(waiting(&mut daemon), 0, "{point}");
        assert!(daemon.close().status.success());
        assert!(!intent_log(&home).exists(), "{point}");
    }
}

#[test]
fn messages_that_were_taken_back_stay_so() {
    let server = server();
    let home = Home::with_model(&server);
    let back = json!({"type": "clear_queue"});
    killed_with(&home, &[steer("One."), follow_up("Two."), back, follow_up("Three.")]);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 1);
    let taken = daemon.done(json!({"type": "clear_queue"}));
    assert_eq!(taken, json!({"steering": [], "followUp": ["Three."]}));
    assert!(holds_nothing(&intent_log(&home)));
    daemon.done(steer("One."));
    assert_eq!(waiting(&mut daemon), 1, "its key is free");
    // A client that closes a session knows its queue.
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 0);
}

/// A message is queued before its session has a file.
#[test]
fn messages_queued_before_the_first_prompt_are_kept_from_then_on() {
    let server = server();
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(follow_up("Later."));
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(waiting(&mut daemon), 1);
    daemon.prompt("And now?");
    assert_eq!(said_in_file(&home), ["Go.", "And now?", "Later."]);
}

/// A message that cannot be written to the intent log is refused; one whose entry cannot be stored is queued again.
#[test]
fn a_full_disk_loses_no_message_that_waits() {
    let gate = Gate::new();
    let first = Reply::stream(sse::text("Well ")).gate(&gate).then(sse::answer("then."));
    let server = MockServer::start([first, fine(), fine()]);
    let home = Home::with_model(&server);
    // The earlier intents belong to the run.
    let mut daemon = armed(&home, &[], "intent_log.intent@3:enospc,store.append@4:enospc");
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    let refused = daemon.refused(steer("Not taken."));
    assert_says(refused["error"].as_str().expect("an error"), &[".ledger"]);
    daemon.done(steer("Taken."));
    gate.open();
    daemon.event("agent_settled");
    assert_eq!(waiting(&mut daemon), 1);
    daemon.done(steer("Taken."));
    assert_eq!(waiting(&mut daemon), 1, "it is not there twice");
    daemon.prompt("Now?");
    assert_eq!(said_in_file(&home), ["Go.", "Now?", "Taken."]);
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
}

/// The disk is full when the session is opened: messages are queued again once there is room.
#[test]
fn messages_that_cannot_be_recovered_at_once_are_queued_later() {
    let server = server();
    let home = Home::with_model(&server);
    killed_with(&home, &[follow_up("Then this.")]);
    // The end of the interrupted answer cannot be stored, twice.
    let mut daemon = armed(&home, &["--continue"], "store.append@1:enospc,store.append@2:enospc");
    assert_eq!(waiting(&mut daemon), 0);
    let refused = daemon.refused(steer("Too early."));
    assert_says(refused["error"].as_str().expect("an error"), &["has to be stored first"]);
    daemon.send(&prompt("And now?"));
    assert_eq!(daemon.event("queue_update")["followUp"], json!(["Then this."]));
    daemon.event("agent_settled");
    assert_eq!(said_in_file(&home), ["Go.", "And now?", "Then this."]);
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
}
