//! Compaction: by command, when the context is too full, when a model did not take it.

mod automatic;
mod branch;
mod crash;
mod long;
mod manual;
mod recovery;

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

/// A home in which the model `fake/fake` has a window of 1000 tokens, of which 200 are kept free.
fn home(server: &MockServer) -> Home {
    home_with(server, &json!({"reserveTokens": 200, "keepRecentTokens": 1}))
}

fn home_with(server: &MockServer, compaction: &Value) -> Home {
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "contextWindow": 1000, "maxTokens": 100}],
    }}}));
    home.settings(&json!({"compaction": compaction, "retry": {"baseDelayMs": 1}}));
    home
}

/// An answer to a request that had so many tokens.
fn answer(text: &str, input: u64) -> Reply {
    Reply::stream(sse::text(text) + &sse::end("stop", (input, 0, 2)))
}

/// A call of `read`, in answer to a request that had so many tokens.
fn call(path: &str, input: u64) -> Reply {
    Reply::stream(
        sse::call_start(0, "call_1", "read")
            + &sse::call_arguments(0, &json!({"path": path}).to_string())
            + &sse::end("tool_calls", (input, 0, 5)),
    )
}

fn too_long() -> Reply {
    Reply::status(400, "application/json", r#"{"error":{"message":"maximum context length is 1000 tokens"}}"#)
}

/// Whether a request asks for a summary.
fn is_summary(request: &agentd_e2e::mock_server::Request) -> bool {
    let system = request.messages()[0]["content"].to_string();
    system.contains("You summarise conversations")
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The types of events from the first `from` on, messages and their updates left out.
fn frame<'a>(events: &'a [Value], from: &str) -> Vec<&'a str> {
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    kinds.skip_while(|kind| *kind != from).filter(|kind| !kind.starts_with("message_")).collect()
}
