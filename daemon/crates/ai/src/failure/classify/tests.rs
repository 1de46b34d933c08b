use agentd_protocol::message::Usage;

use super::*;
use FailureKind::*;

fn check(message: &str, expected: FailureKind) {
    assert_eq!(classify_message("some", message), expected, "{message}");
}

#[test]
fn overflow_and_its_look_alikes() {
    let overflow = [
        "400: {\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}",
        "400: Input is too long for requested model.",
        "413: {\"type\":\"request_too_large\",\"message\":\"Request exceeds the maximum size\"}",
        "ValidationException: too many tokens",
        "400: {\"message\":\"…\",\"code\":\"context_length_exceeded\"}",
        "400: This model's maximum context length is 2048 tokens. However, your messages resulted in 3030 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "400: Please reduce the length of the messages or completion.",
        "Token limit exceeded",
        "400: The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "400: The input (300000 tokens) exceeds the model's maximum context length of 262,144 tokens.",
        "400: Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
        "prompt has 5000 tokens, but the configured context size is 4096 tokens",
        "Input exceeds the maximum allowed input length of 128000 tokens",
        "Input exceeds maximum allowed input length of 128000 tokens",
        "400: {\"code\":400,\"message\":\"request (3030 tokens) exceeds the available context size (2048 tokens), try increasing it\",\"type\":\"exceed_context_size_error\"}",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit (2013)",
        "input (5000 tokens) is longer than the model's context length (4096 tokens)",
        "Your request exceeded model token limit: 262144 (requested: 291351)",
        "Prompt exceeds max length",
        "prompt too long; exceeded max context length by 45 tokens",
        "prompt too long; exceeded context length",
        "400: Range of input length should be [1, 98304]",
        "Provider finish_reason: model_context_window_exceeded",
        "prompt token count of 12000 exceeds the limit of 8192",
        "413: <html>Request Entity Too Large</html>",
        "413: (no body)",
    ];
    overflow.into_iter().for_each(|message| check(message, ContextOverflow));
    check("Throttling error: too many tokens, please wait before trying again.", Retryable);
    check("Service unavailable: too many tokens", Retryable);
    check("429: too many tokens per minute: rate limit reached", Retryable);
    check("Too many requests: token limit exceeded for this minute", Retryable);
    check("400: image exceeds the limit of 20 images", InvalidRequest);
    check("400: the name exceeds the limit of 64 characters", InvalidRequest);
    check("400: max_tokens is too large: 99999", InvalidRequest);
}

#[test]
fn passing_trouble_and_its_look_alikes() {
    let retryable = [
        "429: {\"message\":\"Rate limit reached\",\"type\":\"rate_limit_error\"}",
        "500: {\"code\":500,\"message\":\"Failed to parse tools\",\"type\":\"server_error\"}",
        "502: <html><h1>Bad Gateway</h1></html>",
        "503: {\"message\":\"overloaded\"}",
        "504: (no body)",
        "520: (no body)",
        "524: (no body)",
        "529: {\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}",
        "The model is at capacity right now",
        "We are experiencing high demand.",
        "Provider returned error",
        "RESOURCE_EXHAUSTED",
        "429: {\"code\":429,\"message\":\"Resource has been exhausted (e.g. check quota).\",\"status\":\"RESOURCE_EXHAUSTED\"}",
        "The service is temporarily unavailable",
        "The server is busy",
        "Cannot connect to http://x/: Connection refused (os error 111)",
        "read ECONNRESET",
        "getaddrinfo ENOTFOUND api.example.com",
        "dns error: failed to lookup address information",
        "upstream connect error or disconnect/reset before headers",
        "http2 stream error",
        "WebSocket closed 1006",
        "fetch failed",
        "The request timed out",
        "Stream ended without finish_reason",
        "terminated",
        "upstream answered 502",
        "An error occurred while processing your request. You can retry your request.",
    ];
    retryable.into_iter().for_each(|message| check(message, Retryable));
    check("SyntaxError: unterminated string", Fatal);
    check("the image is 500 pixels wide", Fatal);
    check("error 5029", Fatal);
    check("model v5.502 failed", Fatal);
    check("business rules forbid this", Fatal);
}

#[test]
fn limits_of_the_account_are_never_retried() {
    let never = [
        "429: {\"message\":\"You exceeded your current quota, please check your plan and billing details.\",\"code\":\"insufficient_quota\"}",
        "429: Monthly usage limit reached",
        "429: Free usage limit reached, try again later",
        "402: {\"message\":\"Insufficient balance\"}",
        "403: out of budget",
        "429: {\"code\":\"1308\",\"message\":\"limit reached; resets at 2026-01-01\"}",
        "503: subscription sharing limit",
    ];
    never.into_iter().for_each(|message| check(message, Fatal));
    check("429: {\"code\":\"13081\",\"message\":\"slow down\"}", Retryable);
}

#[test]
fn keys_and_refusals() {
    check("401: {\"message\":\"Invalid API Key\",\"type\":\"authentication_error\"}", Auth);
    check("401: the auth server is busy", Auth);
    check("403: Forbidden", Auth);
    check("Incorrect API key provided", Auth);
    check("400: {\"message\":\"'messages' is required\",\"type\":\"invalid_request_error\"}", InvalidRequest);
    check("404: {\"message\":\"The model `x` does not exist\"}", InvalidRequest);
    check("Provider finish_reason: content_filter", ModelRefusal);
    check(
        "400: {\"code\":\"content_filter\",\"message\":\"filtered: see the content management policy\"}",
        ModelRefusal,
    );
    check("403: {\"message\":\"This model requires moderation, and your input was flagged\"}", ModelRefusal);
    check(
        "400: {\"message\":\"safety_identifier is not a string\",\"type\":\"invalid_request_error\"}",
        InvalidRequest,
    );
    check("503: the content filter is overloaded", Retryable);
    check("something odd", Fatal);
    check("", Fatal);
}

#[test]
fn the_error_type_counts_before_the_text() {
    let evidence =
        Evidence { error_type: Some("overloaded_error"), text: "please do not retry", ..Evidence::default() };
    assert_eq!(classify(&evidence), Retryable);
    let evidence =
        Evidence { status: Some(400), error_type: Some("exceed_context_size_error"), ..Evidence::default() };
    assert_eq!(classify(&evidence), ContextOverflow);
}

#[test]
fn silent_overflow_shows_in_the_usage() {
    let answer = |stop_reason, input, cache_read, output| AssistantMessage {
        stop_reason,
        usage: Usage { input, cache_read, output, ..Usage::default() },
        ..AssistantMessage::pending("a", "p", "m", 0)
    };
    assert_eq!(classify_answer(&answer(StopReason::Stop, 900, 101, 5), 1000), Some(ContextOverflow));
    assert_eq!(classify_answer(&answer(StopReason::Stop, 900, 100, 5), 1000), None);
    assert_eq!(classify_answer(&answer(StopReason::Stop, 900, 101, 5), 0), None);
    assert_eq!(classify_answer(&answer(StopReason::Length, 990, 0, 0), 1000), Some(ContextOverflow));
    assert_eq!(classify_answer(&answer(StopReason::Length, 990, 0, 1), 1000), None);
    assert_eq!(classify_answer(&answer(StopReason::Length, 989, 0, 0), 1000), None);
    assert_eq!(classify_answer(&answer(StopReason::Aborted, 0, 0, 0), 1000), Some(Aborted));
    let refused = AssistantMessage {
        error_message: Some("429: your quota is exceeded, I say".into()),
        code: Some(ErrorCode::ModelRefused),
        ..answer(StopReason::Error, 0, 0, 0)
    };
    assert_eq!(classify_answer(&refused, 1000), Some(ModelRefusal), "whatever the model's words are");
    let failed =
        AssistantMessage { error_message: Some("503: busy".into()), ..answer(StopReason::Error, 0, 0, 0) };
    assert_eq!(classify_answer(&failed, 1000), Some(Retryable));
}
