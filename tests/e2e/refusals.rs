//! A model that refuses: exit codes, the code where a command fails for it, other models in its place.

use agentd_e2e::{
    Daemon, Home, MockServer, Reply,
    ctl::{self, Finished, agentd},
    sse,
    wires::Wire,
};
use serde_json::{Value, json};

use crate::support::{answers, kinds, text};

fn refusal() -> Reply {
    Reply::stream(sse::delta(json!({"refusal": "I can't help with that."})) + &sse::end("stop", (10, 4, 5)))
}

const TOLD: &str = "The model refused: I can't help with that.";

fn run(home: &Home, args: &[&str]) -> Finished {
    ctl::Ctl::start_with(agentd(home, args), std::process::Stdio::null()).finish()
}

#[test]
fn it_has_an_exit_code_of_its_own() {
    let server = MockServer::always(refusal());
    let home = Home::with_model(&server);
    let done = ctl::run(&home, &["prompt", "Hello?"]);
    assert_eq!((done.code, done.stdout.as_str()), (4, "I can't help with that.\n"), "{done:?}");
    assert!(done.stderr.ends_with(&format!("Error: {TOLD}\n")), "{done:?}");
    let done = run(&home, &["-p", "Hello?"]);
    assert_eq!(done, Finished { code: 4, stdout: String::new(), stderr: format!("{TOLD}\n") });
    let done = run(&home, &["--mode", "json", "Hello?"]);
    assert_eq!((done.code, done.stderr.as_str()), (4, ""), "{done:?}");
    let events: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers(&events)[0]["code"], "model_refused");
    assert_eq!(server.requests().len(), 3, "nobody asked twice");
}

#[test]
fn the_last_answer_decides_about_the_exit_code() {
    let server = MockServer::start([refusal(), Reply::stream(sse::answer("Fine.")), refusal()]);
    let home = Home::with_model(&server);
    let done = run(&home, &["-p", "One?", "Two?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Fine.\n"), "{done:?}");
    // What it said in the place of an answer is nothing that the next request goes on from.
    let second = server.requests()[1].body.to_string();
    assert!(
        second.contains("One?") && second.contains("Two?") && !second.contains("help with that"),
        "{second}"
    );
    server.push(Reply::status(
        400,
        "application/json",
        r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#,
    ));
    let done = run(&home, &["--mode", "json", "One?", "Two?"]);
    assert_eq!(done.code, 0, "a bad request is none, and events tell of it: {done:?}");
}

#[test]
fn another_model_may_take_over() {
    let chat = MockServer::start([refusal()]);
    let messages = MockServer::start([Reply::stream(Wire::Messages.answer("Gladly."))]);
    let home = Home::new();
    home.configure(&json!({"providers": {"chat": Wire::Chat.provider(&chat), "messages": Wire::Messages.provider(&messages)}}));
    home.settings(
        &json!({"defaultProvider": "chat", "defaultModel": "chat", "fallbackModels": ["messages/messages"]}),
    );
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Hello?");
    let change = events.iter().find(|event| event["type"] == "model_fallback").expect("another model");
    assert_eq!((&change["reason"], &change["errorMessage"]), (&json!("model_refused"), &json!(TOLD)));
    assert!(!kinds(&events).contains(&"auto_retry_start"), "{:?}", kinds(&events));
    let last = *answers(&events).last().unwrap();
    assert_eq!((text(last), last.get("code")), ("Gladly.".into(), None));
    assert!(!messages.requests()[0].body.to_string().contains("help with that"));
}

#[test]
fn a_summary_that_is_refused_says_so() {
    let server = MockServer::start(["one", "two"].map(|text| Reply::stream(sse::answer(text))));
    server.push(refusal());
    let home = Home::with_model(&server);
    home.settings(&json!({"compaction": {"keepRecentTokens": 1}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt(&"a long story ".repeat(40));
    daemon.prompt("And then?");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    let response = daemon.until("the response", |line| line["type"] == "response" && line["id"] == "co");
    assert_eq!(response["code"], "model_refused", "{response}");
    assert_eq!(response["error"], format!("Summarization failed: {TOLD}"));
}
