//! `agentctl rpc --simple`: messages and interrupts in, events out, in an agentd of its own and in the daemon.

use std::process::Stdio;

use agentd_e2e::{
    Ctl, Gate, Home, MockServer, Reply, Service,
    ctl::{self, Finished},
    sse,
};
use serde_json::{Value, json};

use crate::support::assert_says;

fn message(content: &str) -> String {
    json!({"type": "message", "content": content}).to_string()
}

const INTERRUPT: &str = r#"{"type":"interrupt"}"#;

fn talk(home: &Home, lines: &[&str]) -> Finished {
    ctl::run_with_input(home, &["rpc", "--simple"], &(lines.join("\n") + "\n"))
}

fn start(home: &Home) -> Ctl {
    Ctl::start_with(ctl::command(home, &["rpc", "--simple"]), Stdio::piped())
}

/// The lines of stdout.
fn lines(finished: &Finished) -> Vec<Value> {
    finished.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What the model said in these lines, and what was no event of the session.
fn told(lines: &[Value]) -> Vec<String> {
    let answer = |line: &Value| {
        let message = &line["message"];
        let is_answer = line["type"] == "message_end" && message["role"] == "assistant";
        let text = message["content"]
            .as_array()
            .and_then(|blocks| blocks.iter().find_map(|block| block["text"].as_str()));
        is_answer.then(|| text.unwrap_or_default().to_owned())
    };
    let notice = |line: &Value| {
        let kind = line["type"].as_str().unwrap();
        matches!(kind, "interrupted" | "error").then(|| kind.to_owned())
    };
    lines.iter().filter_map(|line| answer(line).or_else(|| notice(line))).collect()
}

#[test]
fn messages_are_answered_one_after_the_other() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Two files.")), Reply::stream(sse::answer("2"))]);
    let home = Home::with_model(&server);
    let done = talk(&home, &[&message("List all files"), "", &message("Count them")]);
    assert_eq!(done.code, 0, "{done:?}");
    let lines = lines(&done);
    assert_eq!(told(&lines), ["Two files.", "2"]);
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    for kind in ["turn_start", "message_start", "message_end", "turn_end"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    for kind in ["response", "prompt_result", "session_settled"] {
        assert!(!kinds.contains(&kind), "{kind} in {kinds:?}");
    }
}

#[test]
fn an_interrupt_stops_the_work_and_forgets_what_waits() {
    let server =
        MockServer::start([Reply::stream(sse::text("Looking")).hang(), Reply::stream(sse::answer("Three."))]);
    let home = Home::with_model(&server);
    let mut talking = start(&home);
    talking.type_line(&message("List all files"));
    talking.type_line(&message("Forgotten"));
    talking.wait_for_stdout("Looking");
    talking.type_line(INTERRUPT);
    talking.wait_for_stdout(r#"{"type":"interrupted"}"#);
    talking.type_line(&message("Count the files"));
    talking.wait_for_stdout("Three.");
    talking.end_input();
    let done = talking.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(told(&lines(&done)), ["Looking", "interrupted", "Three."]);
}

#[test]
fn all_lines_at_once_have_the_same_shape() {
    let server = MockServer::always(Reply::stream(sse::answer("Five.")));
    let home = Home::with_model(&server);
    let done = talk(&home, &[&message("List all files"), INTERRUPT, &message("Count the files")]);
    assert_eq!(done.code, 0, "{done:?}");
    let told = told(&lines(&done));
    assert_eq!(told[told.len() - 2..], ["interrupted", "Five."], "{told:?}");
}

#[test]
fn with_nothing_at_work_an_interrupt_is_answered_too() {
    let server = MockServer::always(Reply::stream(sse::answer("Well.")));
    let home = Home::with_model(&server);
    let done = talk(&home, &[INTERRUPT]);
    assert_eq!((done.code, told(&lines(&done))), (0, vec!["interrupted".to_owned()]), "{done:?}");
}

#[test]
fn what_cannot_be_used_is_told_and_the_rest_is_answered() {
    let server = MockServer::start([
        Reply::status(400, "text/plain", "no such model"),
        Reply::stream(sse::answer("Well.")),
    ]);
    let home = Home::with_model(&server);
    let done =
        talk(&home, &["hello", r#"{"type":"prompt","message":"x"}"#, &message("Fails"), &message("Works")]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(told(&lines(&done)), ["error", "error", "", "Well."]);
    assert_says(&done.stdout, &["unknown variant `prompt`", "\\\"type\\\":\\\"interrupt\\\""]);
}

#[test]
fn the_daemon_has_the_session_where_one_runs() {
    let gate = Gate::new();
    let server =
        MockServer::always(Reply::stream(sse::text("On it. ")).gate(&gate).then(sse::answer("Done.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut talking = start(&home);
    talking.type_line(&message("Go"));
    talking.wait_for_stdout("On it.");
    let mut client = service.client();
    let list = client.done(json!({"type": "list_sessions", "live": true}));
    assert_eq!(list["sessions"][0]["isStreaming"], true, "{list}");
    gate.open();
    talking.end_input();
    let done = talking.finish();
    assert_eq!((done.code, told(&lines(&done))), (0, vec!["On it. Done.".to_owned()]), "{done:?}");
}

#[test]
fn a_session_that_cannot_be_opened_is_told_on_stderr() {
    let home = Home::new();
    let done = ctl::run_with_input(&home, &["rpc", "--simple", "--", "--session", "nope"], &message("Hi"));
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_says(&done.stderr, &["No session found matching 'nope'"]);
}
