//! Answers of real servers.

use super::*;

fn read(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/captures");
    std::fs::read_to_string(format!("{folder}/{name}.body")).unwrap()
}

/// Checks the content of a body; `tokens`: input, output, read from the cache.
fn check(name: &str, text: &str, calls: &str, tokens: [u64; 3], raw_stop: &str) {
    let message = fold(decode(&read(name)));
    let found: Vec<String> =
        message.tool_calls().map(|call| format!("{} {}", call.name, json!(call.arguments))).collect();
    assert_eq!((message.text().as_str(), found.join("; ").as_str()), (text, calls), "{name}");
    let usage = &message.usage;
    assert_eq!([usage.input, usage.output, usage.cache_read], tokens, "{name}");
    assert_eq!(usage.total_tokens, tokens.iter().sum::<u64>(), "{name}");
    assert_eq!(message.raw_stop_reason.as_deref(), Some(raw_stop), "{name}");
    let stop = if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
    assert_eq!(message.stop_reason, stop, "{name}");
    assert!(message.response_id.is_some_and(|id| id.starts_with("chatcmpl-") || id.starts_with("msg_")));
    assert!(message.response_model.is_some(), "{name}");
}

#[rustfmt::skip]
#[test]
fn of_a_real_model() {
    check("llamacpp-messages-text", "Red, Orange, Yellow", "", [17, 6, 22], "end_turn");
    check("llamacpp-messages-tool", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249], "tool_use");
    check("llamacpp-messages-tool-nostream", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249], "tool_use");
    check("llamacpp-messages-tool-result", "The README.md file contains information about the Zebra project, including its purpose and how to count zebras.", "", [1, 23, 329], "end_turn");
    check("litellm-llamacpp-messages-text", "Red, Orange, Yellow", "", [17, 6, 22], "end_turn");
    check("litellm-llamacpp-messages-tool", "", r#"read_file {"path":"README.md"}"#, [1, 22, 249], "tool_use");
}

#[rustfmt::skip]
#[test]
fn of_imitations() {
    let both = r#"read_file {"path":"a.txt"}; read_file {"path":"b.txt"}"#;
    let colours = "Red, orange, yellow. These three are neighbours in the spectrum.";
    let zebras = "The README says that this project counts zebras.";
    check("aimock-messages-text", colours, "", [0; 3], "end_turn");
    check("aimock-messages-tool", "", r#"read_file {"path":"README.md"}"#, [0; 3], "tool_use");
    check("aimock-messages-tool-nostream", "", r#"read_file {"path":"README.md"}"#, [0; 3], "tool_use");
    check("aimock-messages-tool-parallel", "Reading both.", both, [0; 3], "tool_use");
    check("aimock-messages-tool-result", zebras, "", [0; 3], "end_turn");
    check("litellm-aimock-messages-text", colours, "", [0; 3], "end_turn");
    check("litellm-aimock-messages-tool", "", r#"read_file {"path":"README.md"}"#, [0; 3], "tool_use");
    check("litellm-aimock-messages-tool-parallel", "Reading both.", both, [0; 3], "tool_use");
    check("litellm-aimock-messages-tool-result", zebras, "", [0; 3], "end_turn");
    check("litellm-mock-messages-text", "Red, orange, yellow.", "", [2095, 503, 0], "end_turn");
    check("litellm-mocktool-messages-tool", "Let me look.", "", [2095, 503, 0], "end_turn");
}

#[test]
fn of_refusals() {
    use FailureKind::{Auth, ContextOverflow, InvalidRequest, Retryable};
    let check = |name: &str, status: u16, kind: FailureKind, holds: &str| {
        let body = read(name);
        let failure = server().refusal(Some(status), &ErrorBody::read(&body));
        assert_eq!(failure.kind, kind, "{name}: {failure}");
        assert!(failure.message.contains(holds), "{name}: {failure}");
        // The same with a status that says that all is well.
        let (inside, message) = super::failure(&body);
        assert_eq!(inside, kind, "{name}: {message}");
        assert!(message.contains(holds), "{name}: {message}");
    };
    check("llamacpp-messages-err-overflow", 400, ContextOverflow, "3030 tokens");
    check("llamacpp-messages-err-bad-key", 401, Auth, "Invalid API Key");
    check("llamacpp-messages-err-no-messages", 500, Retryable, "'messages' is required");
    check("aimock-messages-err-overflow", 400, ContextOverflow, "maximum context length is 2048 tokens");
    check("aimock-messages-err-overloaded", 529, Retryable, "overloaded_error");
    check("aimock-messages-err-rate-limit", 429, Retryable, "Rate limit reached");
    check("aimock-messages-err-no-messages", 404, InvalidRequest, "No fixture matched");
    check("litellm-aimock-messages-err-overflow", 400, ContextOverflow, "ContextWindowExceededError");
    check("litellm-aimock-messages-err-rate-limit", 429, Retryable, "RateLimitError");
    check("litellm-llamacpp-messages-err-overflow", 400, ContextOverflow, "available context size");
    check("litellm-badmodel-messages-text", 400, InvalidRequest, "Invalid model name");
    check("litellm-badkey-messages-text", 400, InvalidRequest, "No connected db");
}
