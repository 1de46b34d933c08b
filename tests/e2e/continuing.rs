//! `continue`, and what is said in the middle of a run.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{ended, prompt, text};

#[test]
fn a_message_that_was_queued_while_idle_is_sent_by_continue() {
    let server = MockServer::start([
        Reply::stream(sse::answer("First.")),
        Reply::stream(sse::answer("Second.")),
        Reply::stream(sse::answer("Third.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let empty = daemon.refused(json!({"type": "continue"}));
    assert_eq!(
        (&empty["error"], &empty["code"]),
        (&json!("Cannot continue: no messages in context"), &json!("unsupported"))
    );
    for (kind, message) in [("steer", "One"), ("follow_up", "Two")] {
        daemon.done(json!({"type": kind, "message": message}));
    }
    // Both, one after the other.
    assert_eq!(daemon.done(json!({"type": "continue"})), json!({"disposition": "started"}));
    let events = daemon.settled();
    assert_eq!(ended(&events, "user").into_iter().map(text).collect::<Vec<_>>(), ["One", "Two"]);
    assert_eq!(events.iter().filter(|event| event["type"] == "agent_settled").count(), 1);
    let answered = daemon.refused(json!({"type": "continue"}));
    assert_eq!(answered["error"], "Cannot continue from message role: assistant");
    // A command of the user's is something to answer.
    daemon.done(json!({"type": "bash", "command": "echo look"}));
    daemon.done(json!({"type": "continue"}));
    daemon.settled();
    let requests = server.requests();
    assert!(text(requests[2].messages().last().unwrap()).contains("look"));
    // The model was told of its tools once, before all.
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let roles: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "bashExecution", "assistant"]);
}

#[test]
fn the_state_in_the_middle_of_a_run() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo begun; cat pipe"}))])),
        Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done.")),
    ]);
    let home = Home::with_model(&server);
    let pipe = home.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut daemon = Daemon::start(&home, &[]);
    let state = json!({"type": "get_state"});
    let plain = daemon.done(state.clone());
    for field in ["pendingToolCalls", "hasStreamingMessage", "errorMessage"] {
        assert!(plain.get(field).is_none(), "{field} is not of the plain wire");
    }
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.send(&prompt("Go."));
    daemon.event("tool_execution_update");
    let in_tool = daemon.done(state.clone());
    assert_eq!(
        (&in_tool["pendingToolCalls"], &in_tool["hasStreamingMessage"]),
        (&json!(["c1"]), &json!(false))
    );
    std::fs::write(&pipe, "go on\n").unwrap();
    daemon.until("a delta of the second answer", |line| line["assistantMessageEvent"]["delta"] == "Half");
    let streaming = daemon.done(state.clone());
    assert_eq!(
        (&streaming["pendingToolCalls"], &streaming["hasStreamingMessage"]),
        (&json!([]), &json!(true))
    );
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let partial = messages.as_array().unwrap().last().unwrap();
    assert_eq!((text(partial).as_str(), &partial["stopReason"]), ("Half", &json!("pending")));
    gate.open();
    daemon.settled();
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    assert_eq!(text(messages.as_array().unwrap().last().unwrap()), "Half done.");
    assert_eq!(daemon.done(state)["hasStreamingMessage"], false);
}

#[test]
fn calls_run_one_by_one_where_the_setting_says_so() {
    for (setting, order) in [(json!({"toolExecution": "sequential"}), ["1", "2"]), (json!({}), ["2", "1"])] {
        let call = |id: &'static str, command: &str| (id, "bash", json!({"command": command}));
        // Side by side, the first ends only after the second.
        let first = if order[0] == "1" { "true" } else { "cat pipe" };
        let server = MockServer::start([
            Reply::stream(sse::calls(&[call("1", first), call("2", "echo > pipe")])),
            Reply::stream(sse::answer("Ok.")),
        ]);
        let home = Home::with_model(&server);
        home.settings(&setting);
        let pipe = home.project().join("pipe");
        if order[0] == "2" {
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        }
        let mut daemon = Daemon::start(&home, &[]);
        let explained = daemon.done(json!({"type": "explain_setting", "key": "toolExecution"}));
        let expected = if setting == json!({}) { "parallel" } else { "sequential" };
        assert_eq!(explained["value"], expected, "{explained}");
        let events = daemon.prompt("Go.");
        let steps: Vec<(&str, &str)> = events
            .iter()
            .filter_map(|event| {
                let kind = event["type"].as_str()?.strip_prefix("tool_execution_")?;
                Some((kind, event["toolCallId"].as_str()?)).filter(|(kind, _)| *kind != "update")
            })
            .collect();
        let expected = if setting == json!({}) {
            vec![("start", "1"), ("start", "2")]
        } else {
            vec![("start", "1"), ("end", "1"), ("start", "2"), ("end", "2")]
        };
        assert_eq!(steps[..expected.len()], expected, "{setting}");
    }
}
