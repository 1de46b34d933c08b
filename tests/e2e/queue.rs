//! Messages sent while a run is on: steering, follow-ups, and taking them back.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{ended, prompt, text};

fn said(server: &MockServer, request: usize) -> Vec<String> {
    server.requests()[request].messages()[1..].iter().map(text).collect()
}

/// A run whose first answer calls a tool once the gate is open.
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
    // Each leaves the queue right before its message begins.
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
        // The choice is saved for later sessions.
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
