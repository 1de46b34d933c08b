//! What MCP servers ask the user: forms and pages, in both eras of the protocol.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    mcp::{call, configure, direct},
    support::{assert_says, ended, text},
};

/// A session with the test's server, and a client that answers.
fn start(args: &[&str], protocol: &str) -> (MockServer, Home, Daemon) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut entry = direct(args);
    entry["protocol"] = json!(protocol);
    entry["timeout"] = json!(5);
    configure(&home, json!({"test": entry}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "ui": true}}));
    (model, home, daemon)
}

fn begin_call(daemon: &mut Daemon, model: &MockServer, tool: &str) {
    model.push(Reply::stream(sse::calls(&[("c1", tool, json!({}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.done(json!({"type": "prompt", "message": "Go."}));
}

fn question(daemon: &mut Daemon, method: &str, says: &str) -> Value {
    let question = daemon.event("extension_ui_request");
    assert_eq!(question["method"], method, "{question}");
    assert_says(question["title"].as_str().expect("a title"), &[says]);
    question
}

fn type_in(daemon: &mut Daemon, question: &Value, value: &str) {
    daemon.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": value}));
}

#[test]
fn a_form_is_filled_in_by_the_user_in_both_eras() {
    for (args, protocol, state) in
        [(&[][..], "legacy", ""), (&["--stateless"][..], "2026-07-28", "\"state-1\" "), (&[][..], "auto", "")]
    {
        let (model, _home, mut daemon) = start(args, protocol);
        begin_call(&mut daemon, &model, "mcp__test__ask");
        let asked = question(&mut daemon, "select", "The MCP server \"test\" asks: Who is it?");
        assert_eq!(asked["options"], json!(["Answer", "Decline"]));
        type_in(&mut daemon, &asked, "Answer");
        let name = question(&mut daemon, "input", "Name");
        type_in(&mut daemon, &name, "Ada");
        let age = question(&mut daemon, "input", "age");
        assert_eq!(age["placeholder"], "30");
        type_in(&mut daemon, &age, "");
        let events = daemon.settled();
        let result = text(ended(&events, "toolResult")[0]);
        let content = json!({"action": "accept", "content": {"name": "Ada", "age": 30}});
        assert_eq!(result, format!("{state}{content}"), "{protocol}");
    }
}

#[test]
fn an_abort_takes_the_question_back() {
    let (model, _home, mut daemon) = start(&[], "legacy");
    begin_call(&mut daemon, &model, "mcp__test__ask");
    let asked = question(&mut daemon, "select", "Who is it?");
    daemon.send(&json!({"type": "abort"}));
    let events = daemon.settled();
    let is_resolved = |line: &Value| line["type"] == "ui_request_resolved" && line["id"] == asked["id"];
    if !events.iter().any(is_resolved) {
        daemon.until("the end of the question", is_resolved);
    }
    assert_eq!(text(ended(&events, "toolResult")[0]), "Operation aborted");
}

#[test]
fn nobody_there_means_cancel_at_once() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&[])}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "without dialogs");
    let result = call(&mut daemon, &model, "mcp__test__ask", json!({}));
    assert_eq!(text(&result), json!({"action": "cancel"}).to_string());
}

#[test]
fn a_page_is_shown_and_the_model_told_what_to_do() {
    let (model, _home, mut daemon) = start(&[], "legacy");
    begin_call(&mut daemon, &model, "mcp__test__page");
    let asked = question(&mut daemon, "select", "a page of pages.example yourself: Sign in there.");
    type_in(&mut daemon, &asked, "I open it");
    let events = daemon.settled();
    let result = ended(&events, "toolResult")[0].clone();
    assert_eq!(result["isError"], true);
    assert_says(
        &text(&result),
        &["test/page needs the user to open a page", "https://pages.example/in", "call the tool again"],
    );
}
