//! Compaction of a context that is too full.

use agentd_e2e::{Daemon, Gate, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::{answer, call, frame, home, home_with, is_summary, of_kind};
use crate::support::prompt;

#[test]
fn between_turns_it_makes_room_for_the_next() {
    let server = MockServer::start([call("a.txt", 900), answer("Summary.", 1), answer("Done.", 100)]);
    let home = home(&server);
    home.write("a.txt", "text");
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Read a.txt");
    let after = frame(&events, "tool_execution_end");
    assert_eq!(
        after,
        [
            "tool_execution_end",
            "turn_end",
            "compaction_start",
            "compaction_end",
            "turn_start",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("threshold"), &json!(false)));
    // The call stays with its result; what came before them is in the summary.
    let roles: Vec<Value> = server.requests()[2].messages().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    // The run is one: nothing of it is lost to those who wait for its end.
    let messages = of_kind(&events, "agent_end")[0]["messages"].as_array().unwrap().len();
    assert_eq!(messages, 5);
}

#[test]
fn the_boundary_is_the_window_less_the_reserve() {
    for (input, compacts) in [(798, false), (799, true)] {
        // Two tokens of output.
        let server = MockServer::start([answer("one!", input), answer("Summary.", 1)]);
        let events = Daemon::start(&home(&server), &[]).prompt("Hello?");
        assert_eq!(of_kind(&events, "compaction_start").len(), usize::from(compacts), "{input}");
        if compacts {
            let expected = ["agent_end", "compaction_start", "compaction_end", "agent_settled"];
            assert_eq!(frame(&events, "agent_end"), expected);
        }
    }
}

#[test]
fn nothing_is_said_where_nothing_can_be_done() {
    let server = MockServer::always(answer("one!", 900));
    let home = home_with(&server, &json!({"reserveTokens": 200, "keepRecentTokens": 500}));
    let mut daemon = Daemon::start(&home, &[]);
    for prompt in ["AAAA", "BBBB"] {
        let events = daemon.prompt(prompt);
        assert!(
            of_kind(&events, "compaction_start").is_empty() && of_kind(&events, "compaction_end").is_empty()
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_switch_counts_at_once_and_is_saved() {
    let server = MockServer::start([answer("one!", 900), answer("Summary.", 1), answer("two!", 10)]);
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_auto_compaction", "enabled": false}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["autoCompactionEnabled"], false);
    assert!(of_kind(&daemon.prompt("AAAA"), "compaction_start").is_empty());
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap())
            .unwrap();
    assert_eq!(
        settings["compaction"],
        json!({"reserveTokens": 200, "keepRecentTokens": 1, "enabled": false})
    );
    // Before a prompt, the answer before is looked at again: what comes of it is told before the prompt is accepted.
    daemon.done(json!({"type": "set_auto_compaction", "enabled": true}));
    let events = daemon.prompt("BBBB");
    let kinds = frame(&events, "compaction_start");
    assert_eq!(kinds[..4], ["compaction_start", "compaction_end", "response", "agent_start"]);
    // Once: what the answer said was healed.
    server.push(answer("three", 10));
    assert!(of_kind(&daemon.prompt("CCCC"), "compaction_start").is_empty());
}

#[test]
fn a_model_can_have_limits_of_its_own() {
    let server = MockServer::always(answer("one!", 900));
    let compaction = json!({"reserveTokens": 200, "keepRecentTokens": 1,
        "modelOverrides": {"fake/fake": {"reserveTokens": 50}, "other/model": {"reserveTokens": 999}}});
    let events = Daemon::start(&home_with(&server, &compaction), &[]).prompt("Hello?");
    assert!(of_kind(&events, "compaction_start").is_empty());
}

#[test]
fn queued_messages_wait_for_it_and_go_out() {
    let gate = Gate::new();
    let server = MockServer::start([
        answer("one!", 900),
        Reply::stream(sse::answer("Summary.")).gate_first(&gate),
        answer("two!", 10),
        answer("three", 10),
    ]);
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("AAAA"));
    gate.wait_until_reached();
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["isCompacting"], &state["isStreaming"]), (&json!(true), &json!(true)));
    let queued = daemon.done(json!({"type": "prompt", "message": "BBBB", "streamingBehavior": "followUp"}));
    assert_eq!(queued["disposition"], "queued");
    daemon.done(json!({"type": "steer", "message": "CCCC"}));
    gate.open();
    let events = daemon.settled();
    let after = frame(&events, "compaction_end");
    assert_eq!(after[..4], ["compaction_end", "agent_start", "turn_start", "queue_update"]);
    assert_eq!(
        (server.requests().len(), daemon.done(json!({"type": "get_state"}))["pendingMessageCount"].clone()),
        (4, json!(0))
    );
}

#[test]
fn abort_ends_it_with_the_run() {
    let gate = Gate::new();
    let server = MockServer::start([call("a.txt", 900)]);
    server.push(Reply::stream(sse::text("never")).gate(&gate).hang());
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Read a.txt"));
    gate.wait_until_reached();
    gate.open();
    daemon.send(&json!({"id": "ab", "type": "abort"}));
    let events = daemon.all_until("the answer to abort", |line| line["id"] == "ab");
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!(
        *end,
        json!({"type": "compaction_end", "reason": "threshold", "aborted": true, "willRetry": false})
    );
    assert_eq!(of_kind(&events, "agent_settled")[0]["aborted"], true);
    server.wait_for_disconnects(1);
    assert_eq!(server.requests().iter().filter(|request| is_summary(request)).count(), 1);
}

#[test]
fn a_failure_is_told_and_the_run_goes_on() {
    let failed = Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#);
    let server = MockServer::start([call("a.txt", 900), failed, answer("Done.", 100)]);
    let events = Daemon::start(&home(&server), &[]).prompt("Read a.txt");
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!(
        end["errorMessage"],
        "Auto-compaction failed: Turn prefix summarization failed: 401: {\"message\":\"no\"}"
    );
    assert_eq!(of_kind(&events, "agent_end").len(), 1);
    assert_eq!(server.requests().len(), 3);
}
