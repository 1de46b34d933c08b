//! Recorded streams of real servers, replayed over HTTP in pieces of many sizes.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Home, MockServer, Reply, binaries};
use serde_json::{Value, json};

use crate::support::{answers, text};

fn capture(name: &str) -> Vec<u8> {
    let path: PathBuf = binaries::workspace().join("tests/data/captures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The final answer that the daemon makes of a recorded body, whatever the pieces it comes in.
fn replay(name: &str, content_type: &str) -> Value {
    let body = capture(name);
    let mut seen: Option<Value> = None;
    for size in [1, 7, 64, 1500, body.len().max(1)] {
        // The tools that the recordings call are not offered, so a call is answered with an error and the run goes on.
        let server = MockServer::start([if content_type == "text/event-stream" {
            Reply::stream_in_pieces(&body, size)
        } else {
            Reply::status(200, content_type, &body)
        }]);
        server.push(Reply::stream(agentd_e2e::sse::answer("End.")));
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        let events = daemon.prompt("Go.");
        let mut answer = answers(&events)[0].clone();
        for key in ["timestamp", "durationMs"] {
            answer.as_object_mut().unwrap().remove(key);
        }
        match &seen {
            None => seen = Some(answer),
            Some(seen) => assert_eq!(&answer, seen, "{name} in pieces of {size}"),
        }
    }
    seen.expect("at least one size")
}

fn calls(answer: &Value) -> Vec<(&str, &Value)> {
    let blocks = answer["content"].as_array().unwrap().iter();
    let calls = blocks.filter(|block| block["type"] == "toolCall");
    calls.map(|block| (block["name"].as_str().unwrap(), &block["arguments"])).collect()
}

const SSE: &str = "text/event-stream";

#[test]
fn text_of_a_real_model() {
    let answer = replay("llamacpp-chat-text.body", SSE);
    assert_eq!((&answer["stopReason"], &answer["usage"]["output"]), (&json!("stop"), &json!(6)));
    assert_eq!((&answer["usage"]["input"], &answer["usage"]["cacheRead"]), (&json!(1), &json!(38)));
    assert!(text(&answer).starts_with("Red,"), "{answer}");
}

#[test]
fn a_tool_call_of_a_real_model() {
    let answer = replay("llamacpp-chat-tool.body", SSE);
    assert_eq!(answer["stopReason"], "toolUse", "{answer}");
    let calls = calls(&answer);
    assert_eq!(calls.len(), 1);
    assert!(calls[0].1.as_object().is_some_and(|arguments| !arguments.is_empty()), "{answer}");
}

#[test]
fn an_answer_cut_at_the_limit() {
    for name in ["llamacpp-chat-length.body", "aimock-chat-length.body"] {
        assert_eq!(replay(name, SSE)["stopReason"], "length", "{name}");
    }
}

#[test]
fn parallel_calls() {
    let answer = replay("aimock-chat-tool-parallel.body", SSE);
    let expected = [("read_file", &json!({"path": "a.txt"})), ("read_file", &json!({"path": "b.txt"}))];
    assert_eq!(calls(&answer), expected);
    assert_eq!(text(&answer), "Reading both.");
}

#[test]
fn a_stream_without_usage() {
    for name in ["llamacpp-chat-text-nousage.body", "aimock-chat-text-nousage.body"] {
        let answer = replay(name, SSE);
        assert_eq!(answer["stopReason"], "stop", "{name}");
        assert!(!text(&answer).is_empty(), "{name}");
    }
}

#[test]
fn an_answer_that_is_not_streamed_after_all() {
    for name in ["llamacpp-chat-text-nostream.body", "aimock-chat-text-nostream.body"] {
        let answer = replay(name, "application/json");
        assert_eq!(answer["stopReason"], "stop", "{name}: {answer}");
        assert!(!text(&answer).is_empty(), "{name}");
    }
}
