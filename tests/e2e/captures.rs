//! Recorded streams of real servers, replayed over HTTP in pieces of many sizes.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Home, MockServer, Reply, apis::ProviderApi, binaries};
use serde_json::{Value, json};

use crate::support::{answers, text};

fn capture(name: &str) -> Vec<u8> {
    let path: PathBuf = binaries::workspace().join("tests/data/captures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the daemon's final answer for a recorded body, which must not depend on the size of the pieces. The name tells
/// the API.
fn replay(name: &str, content_type: &str) -> Value {
    let api = match name {
        name if name.contains("-messages-") => ProviderApi::Messages,
        name if name.contains("-responses-") => ProviderApi::Responses,
        _ => ProviderApi::Chat,
    };
    let body = capture(name);
    let mut seen: Option<Value> = None;
    for size in [1, 7, 64, 1500, body.len().max(1)] {
        let server = MockServer::start([if content_type == SSE {
            Reply::stream_in_pieces(&body, size)
        } else {
            Reply::status(200, content_type, &body)
        }]);
        // The recorded tools are not offered, so each call gets an error result and the run goes on.
        server.push(Reply::stream(api.answer("End.")));
        let home = Home::new();
        home.settings(&json!({"retry": {"enabled": false}}));
        home.configure(&json!({"providers": {api.model(): api.provider(&server)}}));
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        let events = daemon.prompt("Go.");
        assert_eq!(server.requests()[0].target, api.target());
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

const RED: &str = "Red, orange, yellow. These three are neighbours in the spectrum.";

#[test]
fn text_over_each_api() {
    for (name, words) in [
        ("llamacpp-messages-text.body", "Red, Orange, Yellow"),
        ("litellm-llamacpp-messages-text.body", "Red, Orange, Yellow"),
        ("aimock-messages-text.body", RED),
        ("litellm-aimock-messages-text.body", RED),
        ("llamacpp-responses-text.body", "Red, Orange, Yellow"),
        ("litellm-llamacpp-responses-text.body", "Red, Orange, Yellow"),
        ("aimock-responses-text.body", RED),
        ("litellm-aimock-responses-text.body", RED),
    ] {
        let answer = replay(name, SSE);
        assert_eq!(
            (text(&answer).as_str(), &answer["stopReason"]),
            (words, &json!("stop")),
            "{name}: {answer}"
        );
    }
}

#[test]
fn calls_over_each_api() {
    let (readme, a, b) = (json!({"path": "README.md"}), json!({"path": "a.txt"}), json!({"path": "b.txt"}));
    let one = vec![("read_file", &readme)];
    let two = vec![("read_file", &a), ("read_file", &b)];
    for (name, expected) in [
        ("llamacpp-messages-tool.body", &one),
        ("litellm-llamacpp-messages-tool.body", &one),
        ("aimock-messages-tool.body", &one),
        ("aimock-messages-tool-parallel.body", &two),
        ("litellm-aimock-messages-tool-parallel.body", &two),
        ("llamacpp-responses-tool.body", &one),
        ("litellm-llamacpp-responses-tool.body", &one),
        ("aimock-responses-tool.body", &one),
        ("aimock-responses-tool-parallel.body", &two),
        ("litellm-aimock-responses-tool-parallel.body", &two),
    ] {
        let answer = replay(name, SSE);
        assert_eq!(
            (&calls(&answer), &answer["stopReason"]),
            (expected, &json!("toolUse")),
            "{name}: {answer}"
        );
    }
}

#[test]
fn whole_answers_over_each_api() {
    for name in [
        "llamacpp-messages-tool-nostream.body",
        "aimock-messages-tool-nostream.body",
        "llamacpp-responses-tool-nostream.body",
        "aimock-responses-tool-nostream.body",
    ] {
        let answer = replay(name, "application/json");
        assert_eq!(calls(&answer), [("read_file", &json!({"path": "README.md"}))], "{name}: {answer}");
    }
    let answer = replay("litellm-mock-messages-text.body", "application/json");
    assert_eq!(text(&answer), "Red, orange, yellow.");
}

#[test]
fn refusals_over_each_api() {
    let refused = |name: &str, status: u16| {
        let api = if name.contains("-messages-") { ProviderApi::Messages } else { ProviderApi::Responses };
        let server = MockServer::always(Reply::status(status, "application/json", capture(name)));
        let home = Home::new();
        // An overflow retry is tested elsewhere.
        home.settings(
            &json!({"retry": {"maxRetries": 1, "baseDelayMs": 1}, "compaction": {"enabled": false}}),
        );
        home.configure(&json!({"providers": {api.model(): api.provider(&server)}}));
        let events = Daemon::start(&home, &["--no-session"]).prompt("Go.");
        let error = answers(&events).last().unwrap()["errorMessage"].as_str().unwrap().to_owned();
        assert!(error.starts_with(&format!("{status}: ")), "{name}: {error}");
        (error, server.requests().len())
    };
    for (name, status, part, requests) in [
        ("aimock-messages-err-rate-limit.body", 429, "rate", 2),
        ("aimock-messages-err-overloaded.body", 529, "verloaded", 2),
        ("litellm-aimock-messages-err-rate-limit.body", 429, "ate", 2),
        ("aimock-messages-err-overflow.body", 400, "maximum context length", 1),
        ("llamacpp-messages-err-overflow.body", 400, "exceed_context_size_error", 1),
        ("litellm-llamacpp-messages-err-overflow.body", 400, "exceed", 1),
        ("llamacpp-messages-err-bad-key.body", 401, "Invalid API Key", 1),
        ("llamacpp-responses-err-no-input.body", 400, "input", 1),
    ] {
        let (error, sent) = refused(name, status);
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(sent, requests, "{name}: {error}");
    }
    let page = replay("litellm-mock-responses-text.body", SSE);
    assert_eq!(page["stopReason"], "error", "{page}");
}
