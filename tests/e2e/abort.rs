//! Stopping a run: what was produced stays, every call gets a result, the next prompt works.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, processes, sse};
use serde_json::{Value, json};

use crate::support::{answers, ended, prompt, text};

#[test]
fn while_streaming_the_part_is_kept() {
    let server =
        MockServer::start([Reply::stream(sse::text("Part")).hang(), Reply::stream(sse::answer("Whole."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let events = daemon.settled();
    let answer = *answers(&events).last().expect("an answer");
    assert_eq!((text(answer).as_str(), &answer["stopReason"]), ("Part", &json!("aborted")));
    assert!(answer["errorMessage"].is_string(), "{answer}");
    assert_eq!(events.last().unwrap()["aborted"], true);
    // The answer to `abort` is the very next thing.
    let response = daemon.line();
    assert_eq!((&response["id"], &response["success"]), (&json!("a"), &json!(true)));
    server.wait_for_disconnects(1);
    assert_eq!(text(answers(&daemon.prompt("Again."))[0]), "Whole.");
}

#[test]
fn before_the_first_byte() {
    let server = MockServer::start([Reply::silence()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let _ = server.wait_for_requests(1);
    daemon.done(json!({"type": "abort"}));
    let events = daemon.settled();
    assert_eq!(answers(&events)[0]["stopReason"], "aborted");
    server.wait_for_disconnects(1);
}

#[test]
fn while_tools_run_all_calls_get_a_result_and_nothing_is_left() {
    let script = "echo begun; sleep 1000 & echo pid $!; setsid sleep 1000 & echo pid $!; wait";
    let server = MockServer::start([Reply::stream(sse::calls(&[
        ("c1", "bash", json!({"command": script})),
        ("c2", "bash", json!({"command": "echo other; sleep 1000"})),
    ]))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let mut seen = (false, Vec::new());
    while !seen.0 || seen.1.len() < 2 {
        let update = daemon.event("tool_execution_update");
        let output = text(&update["partialResult"]);
        seen.0 |= output.contains("other");
        if update["toolCallId"] == "c1" {
            seen.1 = pids(&output);
        }
    }
    let children = processes::watch(&seen.1);
    daemon.done(json!({"type": "abort"}));
    children.assert_gone_within(std::time::Duration::from_secs(1));
    let events = daemon.settled();
    let results = ended(&events, "toolResult");
    assert_eq!(results.iter().map(|result| &result["toolCallId"]).collect::<Vec<_>>(), ["c1", "c2"]);
    for result in results {
        assert_eq!(result["isError"], true);
        assert!(text(result).ends_with("Command aborted"), "{result}");
    }
    assert_eq!(answers(&events).last().unwrap()["stopReason"], "aborted");
}

/// The process ids in lines `pid N`.
fn pids(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

#[test]
fn idle_it_does_nothing() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&json!({"id": "a", "type": "abort"}));
    assert_eq!(daemon.line(), json!({"id": "a", "type": "response", "command": "abort", "success": true}));
}

#[test]
fn commands_are_answered_while_a_run_is_on() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["isStreaming"], true);
    for kind in [
        "get_session_stats",
        "get_messages",
        "get_entries",
        "get_available_models",
        "get_last_assistant_text",
    ] {
        daemon.done(json!({"type": kind}));
    }
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo hi"}))["output"], "hi\n");
    gate.open();
    daemon.settled();
    // The command ran while the run was on; its message follows the run's.
    let messages = daemon.done(json!({"type": "get_messages"}));
    let roles: Vec<&Value> = messages["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "bashExecution"]);
}
