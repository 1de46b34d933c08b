//! The tool `ask`: questions of the model to the user, on the real binaries.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::offered,
    support::{assert_says, text},
};

/// A home whose sessions have the tool, with these settings besides.
fn enabled(more: &Value) -> (MockServer, Home) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut settings = json!({"ask": {"enabled": true}});
    if let Some(timeout) = more.get("timeoutMs") {
        settings["ask"]["timeoutMs"] = timeout.clone();
    }
    home.settings(&settings);
    (model, home)
}

fn question(more: Value) -> Value {
    let mut question = json!({
        "id": "db", "question": "Which database?", "options": [{"label": "SQLite"}, {"label": "Postgres"}],
    });
    question.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    question
}

/// Begins a run in which the model asks.
fn asks(daemon: &mut Daemon, model: &MockServer, questions: Value) {
    model.push(Reply::stream(sse::calls(&[("c1", "ask", json!({"questions": questions}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
}

/// Answers the next dialog; gives it back.
fn answer(daemon: &mut Daemon, response: Value) -> Value {
    let asked = daemon.event("extension_ui_request");
    let mut response = response;
    response["type"] = json!("extension_ui_response");
    response["id"] = asked["id"].clone();
    daemon.send(&response);
    asked
}

fn result(daemon: &mut Daemon) -> Value {
    let is_result =
        |event: &Value| event["type"] == "message_end" && event["message"]["role"] == "toolResult";
    let result = daemon.until("a result", is_result)["message"].clone();
    daemon.event("agent_settled");
    result
}

#[test]
fn a_plain_client_answers_a_question() {
    let (model, home) = enabled(&json!({}));
    // No hello: the dialog is one that clients of pi know.
    let mut daemon = Daemon::start(&home, &[]);
    asks(&mut daemon, &model, json!([question(json!({"recommended": 1}))]));
    let asked = answer(&mut daemon, json!({"value": "Postgres (recommended)"}));
    assert_eq!((&asked["method"], &asked["title"]), (&json!("select"), &json!("Which database?")));
    assert_eq!(asked["options"], json!(["SQLite", "Postgres (recommended)", "Another answer…"]));
    let told = result(&mut daemon);
    assert_eq!(text(&told), "User answers:\ndb: Postgres");
    assert_eq!(told["details"]["selectedOptions"], json!(["Postgres"]));
    let requests = model.requests();
    assert_says(&text(requests[1].messages().last().expect("a result")), &["db: Postgres"]);
}

#[test]
fn several_answers_and_a_typed_one() {
    let (model, home) = enabled(&json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let questions = json!([question(json!({"multi": true})), question(json!({"id": "cache"}))]);
    asks(&mut daemon, &model, questions);
    answer(&mut daemon, json!({"value": "[ ] SQLite"}));
    let again = answer(&mut daemon, json!({"value": "Done"}));
    assert_eq!(again["options"][0], "[x] SQLite");
    answer(&mut daemon, json!({"value": "Another answer…"}));
    let typed = answer(&mut daemon, json!({"value": "Redis"}));
    assert_eq!(typed["method"], "input");
    let told = result(&mut daemon);
    assert_eq!(text(&told), "User answers:\ndb: SQLite\ncache: Redis");
    assert_eq!(told["details"]["results"][1]["customInput"], "Redis");
}

#[test]
fn a_closed_question_is_an_error_and_an_abort_takes_it_back() {
    let (model, home) = enabled(&json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    asks(&mut daemon, &model, json!([question(json!({}))]));
    answer(&mut daemon, json!({"cancelled": true}));
    let told = result(&mut daemon);
    assert_eq!(told["isError"], true);
    assert_says(&text(&told), &["\"Which database?\"", "without an answer"]);

    model.push(Reply::stream(sse::calls(&[("c2", "ask", json!({"questions": [question(json!({}))]}))])));
    daemon.send(&json!({"id": "q", "type": "prompt", "message": "Again."}));
    daemon.event("extension_ui_request");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    assert_eq!(text(&result(&mut daemon)), "Operation aborted");
}

#[test]
fn without_an_answer_the_recommended_one_counts() {
    let (model, home) = enabled(&json!({"timeoutMs": 50}));
    let mut daemon = Daemon::start(&home, &[]);
    asks(&mut daemon, &model, json!([question(json!({"recommended": 1}))]));
    let told = result(&mut daemon);
    assert_eq!(text(&told), "User answers:\ndb: Postgres (auto-selected after timeout)");
    assert_eq!(told["details"]["timedOut"], true);
}

#[test]
fn it_is_active_only_where_somebody_says_so() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let tools = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, args);
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt("Go.");
        offered(&model, model.requests().len() - 1)
    };
    let four = ["read", "bash", "edit", "write"];
    assert_eq!(tools(&["--no-session"]), four);
    assert_eq!(tools(&["--no-session", "--tools", "+ask"]), [&four[..], &["ask"]].concat());
    home.settings(&json!({"ask": {"enabled": true}}));
    assert_eq!(tools(&["--no-session"]), [&four[..], &["ask"]].concat());
}
