//! kill -9 while a compaction is under way, and right after it.

use agentd_e2e::{Daemon, Gate, MockServer, Reply, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{answer, home_with, is_summary};
use crate::support::{assert_says, records, roles, text, wait_until_free};

#[test]
fn before_the_summary_is_stored_the_conversation_is_as_it_was() {
    let gate = Gate::new();
    let server = MockServer::start([
        answer("one!", 10),
        answer("two!", 20),
        Reply::stream(sse::answer("Half a summ")).gate_first(&gate),
        answer("three!", 30),
        answer("## Goal\nAll.", 40),
        answer("The turn.", 50),
    ]);
    let home = home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    let before = daemon.done(json!({"type": "get_messages"}));
    daemon.send(&json!({"id": "co", "type": "compact"}));
    daemon.event("compaction_start");
    gate.wait_until_reached();
    daemon.signal(Signal::KILL);
    drop(daemon);
    gate.open();

    let file = home.session_files().remove(0);
    assert!(records(&file).iter().all(|record| record["type"] != "compaction"));
    wait_until_free(&file);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(daemon.done(json!({"type": "get_messages"})), before);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isCompacting"], false);
    // It goes on, and can be compacted after all.
    daemon.prompt("CCCC");
    assert!(!is_summary(&server.requests()[3]));
    assert_says(daemon.done(json!({"type": "compact"}))["summary"].as_str().unwrap(), &["## Goal\nAll."]);
}

#[test]
fn once_its_end_is_told_it_is_stored() {
    let server =
        MockServer::start([answer("one!", 10), answer("two!", 20), answer("S.", 30), answer("three!", 40)]);
    let home = home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    let end = daemon.event("compaction_end");
    daemon.signal(Signal::KILL);
    drop(daemon);
    let file = home.session_files().remove(0);
    wait_until_free(&file);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let context = daemon.done(json!({"type": "get_messages"}));
    let messages = context["messages"].as_array().unwrap();
    assert_eq!(
        (&messages[1]["role"], &messages[1]["summary"]),
        (&json!("compactionSummary"), &end["result"]["summary"])
    );
    daemon.prompt("CCCC");
    let request = &server.requests()[3];
    let said: Vec<String> = request.messages()[1..].iter().map(text).collect();
    assert!(said[0].contains("S.") && !said.iter().any(|text| text == "AAAA"), "{said:?}");
    let kinds: Vec<Value> = records(&file).into_iter().map(|record| record["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "compaction").count(), 1);
    assert_eq!(roles(&file).last().map(String::as_str), Some("assistant"));
}
