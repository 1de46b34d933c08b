//! Summaries of branches that the conversation leaves.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{answer_to_tokens, of_kind, prompt, records, small_window_home, text};

/// A session of two prompts, and the entry of the second one.
fn talk(server: &MockServer, home: &Home) -> (Daemon, Value) {
    server.push(answer_to_tokens("One.", 10));
    server.push(answer_to_tokens("Two.", 10));
    let mut daemon = Daemon::start(home, &[]);
    daemon.prompt("first");
    daemon.prompt("second");
    let messages = daemon.done(json!({"type": "get_fork_messages"}));
    (daemon, messages["messages"][1]["entryId"].clone())
}

fn leave(entry: &Value) -> Value {
    json!({"id": "nt", "type": "navigate_tree", "entryId": entry, "summarize": true, "customInstructions": "Briefly."})
}

fn leaf(daemon: &mut Daemon) -> Value {
    daemon.done(json!({"type": "get_tree"}))["leafId"].clone()
}

#[test]
fn a_branch_that_is_left_is_summarised() {
    let server = MockServer::start([]);
    let home = small_window_home(&server);
    let (mut daemon, second) = talk(&server, &home);
    let left = leaf(&mut daemon);
    server.push(answer_to_tokens("## Goal\nNone.", 30));
    let navigated = daemon.done(leave(&second));
    assert_eq!((&navigated["cancelled"], &navigated["editorText"]), (&json!(false), &json!("second")));
    assert_eq!(navigated["summaryEntryId"], navigated["leafId"]);
    let request = server.requests().pop().unwrap();
    let question = text(&request.messages()[1]);
    let conversation = "<conversation>\n[User]: second\n\n[Assistant]: Two.\n</conversation>\n\n";
    assert!(
        question.starts_with(conversation) && question.ends_with("\n\nAdditional focus: Briefly."),
        "{question}"
    );
    assert!(!question.contains("Critical Context"), "{question}");

    let records = records(&home.session_files()[0]);
    let entry = records.last().unwrap();
    let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["type", "id", "parentId", "timestamp", "fromId", "summary", "details", "usage", "fromHook"]
    );
    let answered = records.iter().find(|record| text(&record["message"]) == "One.").unwrap();
    assert_eq!((&entry["type"], &entry["id"]), (&json!("branch_summary"), &navigated["leafId"]));
    assert_eq!((&entry["parentId"], &entry["fromId"]), (&answered["id"], &left));
    let summary = entry["summary"].as_str().unwrap();
    assert_eq!(summary.lines().skip(2).collect::<Vec<_>>(), ["", "## Goal", "None."], "{summary}");

    // The next prompt sees the summary, and nothing else of the branch.
    server.push(answer_to_tokens("Three.", 10));
    daemon.prompt("instead");
    let request = server.requests().pop().unwrap();
    let texts: Vec<String> = request.messages()[1..].iter().map(text).collect();
    assert_eq!((texts[0].as_str(), texts[1].as_str(), texts[3].as_str()), ("first", "One.", "instead"));
    assert!(texts[2].contains("## Goal\nNone.</summary>") && texts.len() == 4, "{texts:?}");
}

#[test]
fn without_a_summary_nothing_moves() {
    let server = MockServer::start([]);
    let home = small_window_home(&server);
    let (mut daemon, second) = talk(&server, &home);
    let before = leaf(&mut daemon);
    server.push(Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#));
    let refused = daemon.refused(leave(&second));
    assert_eq!(refused["error"], "Branch summarization failed: 401: {\"message\":\"no\"}");
    assert_eq!(leaf(&mut daemon), before);
    // Nothing is left behind, so no summary is requested.
    let count = server.requests().len();
    let navigated = daemon.done(leave(&before));
    assert_eq!((&navigated["leafId"], &navigated["summaryEntryId"]), (&before, &Value::Null));
    assert_eq!(server.requests().len(), count);
    // A summary is retried as often as an answer.
    let overloaded = Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#);
    server.push(overloaded);
    server.push(answer_to_tokens("S.", 1));
    daemon.send(&leave(&second));
    let lines = daemon.all_until("the answer", |line| line["id"] == "nt");
    assert_eq!(
        of_kind(&lines, "summarization_retry_attempt_start"),
        [&json!({"type": "summarization_retry_attempt_start", "source": "branchSummary"})]
    );
}

#[test]
fn abort_stops_a_branch_summary_and_a_prompt_can_take_its_place() {
    let server = MockServer::start([]);
    let home = small_window_home(&server);
    let (mut daemon, second) = talk(&server, &home);
    let before = leaf(&mut daemon);
    let waiting = |daemon: &mut Daemon| {
        let gate = Gate::new();
        server.push(Reply::stream(sse::text("never")).gate(&gate).hang());
        daemon.send(&leave(&second));
        gate.wait_until_reached();
        gate.open();
    };
    waiting(&mut daemon);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isCompacting"], true);
    let refused = daemon.refused(json!({"type": "prompt", "message": "Now?"}));
    assert!(
        refused["error"].as_str().unwrap().starts_with("Cannot submit a prompt while compaction"),
        "{refused}"
    );
    assert_eq!(daemon.refused(leave(&second))["code"], "busy");
    daemon.done(json!({"type": "abort"}));
    let answer_to = |daemon: &mut Daemon| daemon.until("the answer", |line| line["id"] == "nt");
    assert_eq!(answer_to(&mut daemon)["data"], json!({"cancelled": true, "leafId": before}));
    assert_eq!(leaf(&mut daemon), before);
    waiting(&mut daemon);
    server.push(answer_to_tokens("Three.", 10));
    daemon.send(&json!({"id": "ap", "type": "abort_and_prompt", "message": "third"}));
    assert_eq!(answer_to(&mut daemon)["data"]["cancelled"], true);
    daemon.settled();
    let last = server.requests().pop().unwrap();
    assert_eq!(text(last.messages().last().unwrap()), "third");
    // Navigation works again.
    server.push(answer_to_tokens("Four.", 10));
    daemon.send(&prompt("fourth"));
    daemon.settled();
}
