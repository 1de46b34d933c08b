//! A bug in the daemon: one run, or one session, breaks down, and nothing else does.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, prompt, text};

/// A daemon in which a place panics.
fn armed(home: &Home, args: &[&str], points: &str) -> Daemon {
    Daemon::start_with(home, args, |command| {
        command.env("AGENTD_FAIL_POINTS", points).env("RUST_BACKTRACE", "0");
    })
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["type"].as_str()).collect()
}

/// What begins ends: each `_start` has its `_end`, in the right order.
fn assert_is_whole(lines: &[Value]) {
    let mut open: Vec<String> = Vec::new();
    for line in lines {
        let kind = line["type"].as_str().expect("a type");
        let name = match kind.rsplit_once('_') {
            Some((name @ "tool_execution", _)) => format!("{name} {}", line["toolCallId"]),
            Some((name, _)) => name.to_owned(),
            None => continue,
        };
        if kind.ends_with("_start") {
            open.push(name);
        } else if kind.ends_with("_end") {
            let at = open.iter().rposition(|open| *open == name);
            open.remove(at.unwrap_or_else(|| panic!("{kind} without a start: {:?}", kinds(lines))));
        }
    }
    assert_eq!(open, [""; 0], "{:?}", kinds(lines));
}

fn last_answer(lines: &[Value]) -> &Value {
    let ended = lines.iter().rev().find(|line| line["type"] == "message_end");
    &ended.expect("an answer")["message"]
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["role"].as_str()).collect()
}

fn stored(daemon: &mut Daemon) -> Vec<Value> {
    let messages = daemon.done(json!({"type": "get_messages"}));
    messages["messages"].as_array().expect("a list").clone()
}

/// In the middle of an answer: what had come is kept, and the next prompt works.
#[test]
fn a_run_that_breaks_down_in_an_answer_is_closed() {
    for args in [&[][..], &["--no-session"]] {
        let server = MockServer::start([
            Reply::stream(sse::answer("Never told whole.")),
            Reply::stream(sse::answer("All is well.")),
        ]);
        let home = Home::with_model(&server);
        let mut daemon = armed(&home, args, "run.delta:panic");
        let lines = daemon.prompt("Go.");
        assert_is_whole(&lines);
        let answer = last_answer(&lines);
        assert_eq!(answer["role"], "assistant");
        let reason = answer["stopReason"].as_str().expect("a reason");
        assert!(matches!(reason, "aborted" | "error"), "{answer}");
        assert!(answer["errorMessage"].is_string(), "{answer}");
        assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
        let lines = daemon.prompt("Again.");
        assert_is_whole(&lines);
        assert_eq!(text(last_answer(&lines)), "All is well.");
        assert_eq!(roles(&stored(&mut daemon)), ["system", "user", "assistant", "user", "assistant"]);
        assert!(daemon.close().status.success());
    }
}

/// When calls are about to be made: each has a result that is true, and its end is told.
#[test]
fn a_run_that_breaks_down_before_its_calls_has_results_of_them() {
    let calls = [("c1", "bash", json!({"command": "true"})), ("c2", "bash", json!({"command": "true"}))];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("All is well."))]);
    let home = Home::with_model(&server);
    let mut daemon = armed(&home, &[], "run.tool_started:panic");
    let lines = daemon.prompt("Go.");
    assert_is_whole(&lines);
    assert_says(last_answer(&lines)["errorMessage"].as_str().expect("an error"), &["agentd", "bug", "log"]);
    let messages = stored(&mut daemon);
    assert_eq!(roles(&messages), ["system", "user", "assistant", "toolResult", "toolResult", "assistant"]);
    for result in messages.iter().filter(|message| message["role"] == "toolResult") {
        assert!(text(result).starts_with("interrupted by a crash; it "), "{result}");
    }
    let told = lines.iter().find(|line| line["type"] == "agent_end").expect("an end");
    assert_eq!(told["messages"].as_array().expect("a list").len(), messages.len());
    let lines = daemon.prompt("Again.");
    assert_eq!(text(last_answer(&lines)), "All is well.");
    assert!(daemon.close().status.success());
    // Nothing is left to be recovered.
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(stored(&mut daemon).len(), messages.len() + 2);
    assert!(daemon.close().status.success());
}

/// The task of a session itself: who listens is told, the daemon and its other sessions go on, and the session opens again.
#[test]
fn a_session_that_breaks_down_says_so_and_opens_again() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Wait")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::answer("Not stored.")),
        Reply::stream(sse::answer("All is well.")),
    ]);
    let home = Home::with_model(&server);
    // The first three messages: the system's and the user's of one session, and the system's of the other.
    let service = Service::start_with(&home, &[], |command| {
        command.env("AGENTD_FAIL_POINTS", "session.stored@5:panic").env("RUST_BACKTRACE", "0");
    });
    let open = |name: &str| {
        let mut client = service.client();
        let hello = json!({"type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": {"sessions": true}});
        client.done(hello);
        let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
        (client, opened["sessionId"].as_str().expect("an id").to_owned())
    };
    let ((mut other, at_work), (mut client, id)) = (open("other"), open("client"));
    other.done(prompt("One."));
    other.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    client.send(&json!({"id": "p", "type": "prompt", "message": "Two."}));
    let lines = client.all_until("the end of the session", |line| line["type"] == "session_closed");
    let of_run: Vec<Value> = lines.iter().filter(|line| line["sessionId"] == json!(id)).cloned().collect();
    assert_is_whole(&of_run);
    assert!(kinds(&lines).contains(&"agent_settled"), "{:?}", kinds(&lines));
    let error = last_answer(&lines)["errorMessage"].as_str().expect("an error").to_owned();
    assert_says(&error, &["session broke down", "log", "Open it again"]);
    // The other one did not notice.
    gate.open();
    let lines = other.settled();
    assert_eq!(text(last_answer(&lines)), "Wait");
    assert_eq!(lines.iter().filter(|line| line["type"] == "session_closed").count(), 0);
    let state = other.done(json!({"type": "get_state"}));
    assert_eq!((&state["sessionId"], &state["isStreaming"]), (&json!(at_work), &json!(false)));
    // What was stored is there, and what was not is made whole.
    client.done(json!({"type": "attach_session", "sessionId": id}));
    let lines = client.prompt("Again.");
    assert_eq!(text(last_answer(&lines)), "All is well.");
}
