//! Whole messages as servers send them: each with one that reads much like it and means something else.

use super::*;
use FailureKind::{Auth, ContextOverflow, Fatal, InvalidRequest, ModelRefusal, Retryable};

/// Checks a table of (message, look-alike, what the look-alike is).
fn check(rows: &[(&str, &str, FailureKind)], meant: FailureKind) {
    for (message, look_alike, instead) in rows {
        assert_eq!(classify_message("some", message), meant, "{message}");
        assert_eq!(classify_message("some", look_alike), *instead, "{look_alike}");
        assert_ne!(*instead, meant, "a look-alike of another kind: {look_alike}");
    }
}

#[test]
fn context_overflow() {
    check(
        &[
            (
                r#"400: {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_1"}"#,
                r#"400: {"type":"error","error":{"type":"invalid_request_error","message":"stop_sequences.0: the sequence is too long"}}"#,
                InvalidRequest,
            ),
            (
                "ValidationException: Input is too long for requested model.",
                "400: The name of the tool is too long for the requested model.",
                InvalidRequest,
            ),
            (
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                r#"400: {"error":{"message":"max_tokens is too large: 99999. This model supports at most 16384 completion tokens","type":"invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (
                "Validation error: Too many tokens in the prompt",
                "Throttling error: Too many tokens, please wait before trying again.",
                Retryable,
            ),
            (
                "ValidationException: too many tokens",
                "ThrottlingException: Too many tokens, please wait before trying again.",
                Retryable,
            ),
            (
                "The model returned the following errors: too many tokens",
                "Service unavailable: Too many tokens, please wait before trying again.",
                Retryable,
            ),
            (
                r#"400: {"error":{"message":"Input tokens exceed the configured limit of 272000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                r#"400: {"error":{"message":"Invalid 'messages[0].name': string too long. Expected a string with maximum length 64, but got a string with length 100 instead.","type":"invalid_request_error","code":"string_above_max_length"}}"#,
                InvalidRequest,
            ),
            (
                r#"400: {"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 135211 tokens.","type":"invalid_request_error"}}"#,
                r#"400: {"error":{"message":"The maximum context length is set by the model, not by the request","type":"invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "500: The context window could not be read.",
                Retryable,
            ),
            (
                "400: Please reduce the length of the messages or completion.",
                "400: Please reduce the length of the tool's name.",
                InvalidRequest,
            ),
            (
                r#"400: {"message":"Token limit exceeded"}"#,
                r#"429: {"message":"Token limit exceeded: tokens per minute"}"#,
                Retryable,
            ),
            ("Token limit exceeded", "403: Your organization's monthly token limit exceeded", Fatal),
            (
                r#"400: {"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#,
                r#"400: {"error":{"code":400,"message":"The number of images exceeds the maximum (16).","status":"INVALID_ARGUMENT"}}"#,
                InvalidRequest,
            ),
            (
                r#"400: {"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
                r#"400: {"error":"This model's maximum image size is 20 MB but the request contains 30 MB."}"#,
                InvalidRequest,
            ),
            (
                "400: Input length 265330 exceeds the model's maximum context length of 262,144 tokens.",
                "400: The reply exceeds the model's maximum number of tool calls.",
                InvalidRequest,
            ),
            (
                "400: The input (300000 tokens) exceeds the model's maximum context length (262144).",
                "400: The temperature exceeds the model's maximum (2).",
                InvalidRequest,
            ),
            (
                r#"400: {"object":"error","message":"Prompt contains 36250 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}"#,
                r#"400: {"object":"error","message":"The image is too large for model with vision","type":"invalid_request_error"}"#,
                InvalidRequest,
            ),
            (
                "400: prompt has 5,000 tokens, but the configured context size is 4,096 tokens",
                "400: the prompt has no tokens",
                InvalidRequest,
            ),
            (
                "400: Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
                "400: The title exceeds the maximum allowed length of 80 characters.",
                InvalidRequest,
            ),
            (
                "400: The input exceeds maximum allowed input length of 131040 tokens.",
                "400: The file exceeds maximum allowed size of 20 MB.",
                InvalidRequest,
            ),
            (
                r#"400: {"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}"#,
                r#"507: {"error":{"message":"the model exceeds the available memory"}}"#,
                Fatal,
            ),
            (
                "400: The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length.",
                "400: top_k is greater than the number of tokens.",
                InvalidRequest,
            ),
            (
                r#"400: {"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#,
                r#"400: {"type":"error","error":{"type":"bad_request_error","message":"invalid params, window of the search exceeds the page"}}"#,
                InvalidRequest,
            ),
            (
                "400: input (5000 tokens) is longer than the model's context length (4096 tokens).",
                "400: the stop word is longer than the model's vocabulary allows.",
                InvalidRequest,
            ),
            (
                r#"{"code":400,"message":"request (3030 tokens)","type":"exceed_context_size_error","n_prompt_tokens":3030,"n_ctx":2048}"#,
                r#"400: {"code":400,"message":"n_ctx must be positive","type":"invalid_request_error"}"#,
                InvalidRequest,
            ),
            (
                r#"400: {"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)","type":"invalid_request_error"}}"#,
                r#"429: {"error":{"message":"Your account reached max organization TPM: request exceeded 60000 tokens, please try again after 1 second","type":"rate_limit_reached_error"}}"#,
                Retryable,
            ),
            (
                r#"400: {"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
                r#"400: {"error":{"code":"1210","message":"top_p exceeds max value"}}"#,
                InvalidRequest,
            ),
            (
                "400: prompt too long; exceeded max context length by 45 tokens",
                "400: path too long; exceeded max length",
                InvalidRequest,
            ),
            (
                "400: prompt too long; exceeded context length",
                "400: header too long; exceeded length",
                InvalidRequest,
            ),
            (
                r#"400: {"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]","type":"invalid_request_error"}}"#,
                r#"400: {"error":{"code":"invalid_parameter_error","message":"Range of max_tokens should be [1, 8192]","type":"invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (
                "Provider finish_reason: model_context_window_exceeded",
                "Provider finish_reason: content_filter",
                ModelRefusal,
            ),
            (
                r#"400: {"error":{"message":"prompt token count of 135000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
                r#"400: {"error":{"message":"the number of tools exceeds the limit of 128 items","code":"invalid_tools"}}"#,
                InvalidRequest,
            ),
            (
                "413: <html><h1>Request Entity Too Large</h1></html>",
                "414: <html><h1>URI Too Long</h1></html>",
                Fatal,
            ),
            ("413: (no body)", "500: the code is 413", Retryable),
            ("413", "error 4130", Fatal),
        ],
        ContextOverflow,
    );
}

#[test]
fn an_error_without_a_body_is_an_overflow_at_cerebras_alone() {
    for status in [400, 413] {
        for body in ["", "(no body)", "status code (no body)"] {
            let is = |provider, text| {
                classify(&Evidence { provider, status: Some(status), error_type: None, text })
            };
            let elsewhere = if status == 413 { ContextOverflow } else { InvalidRequest };
            assert_eq!(is("cerebras", body), ContextOverflow, "{status} {body:?}");
            assert_eq!(is("groq", body), elsewhere, "{status} {body:?}");
            let stored = format!("{status}: {body}");
            assert_eq!(classify_message("cerebras", &stored), ContextOverflow, "{stored}");
            assert_eq!(classify_message("groq", &stored), elsewhere, "{stored}");
        }
    }
    assert_eq!(classify_message("cerebras", "400: property 'store' is unsupported"), InvalidRequest);
    assert_eq!(classify_message("cerebras", "401: (no body)"), Auth);
    assert_eq!(classify_message("cerebras", "(no body)"), Fatal, "no status");
}

#[test]
fn limits_of_the_account() {
    check(
        &[
            (
                r#"429: {"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                r#"429: {"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#,
                Retryable,
            ),
            (
                "429: Quota exceeded for metric: generate_content_free_tier_requests, limit: 50",
                "503: the quota service is unavailable",
                Retryable,
            ),
            (
                "429: Monthly usage limit reached",
                "429: Minute's limit reached, this is used every month",
                Retryable,
            ),
            (
                r#"429: {"error":{"type":"FreeUsageLimitError","message":"Rate limit exceeded. Please try again later."}}"#,
                r#"429: {"error":{"type":"RateLimitError","message":"Rate limit exceeded. Please try again later."}}"#,
                Retryable,
            ),
            (
                r#"429: {"type":"error","error":{"type":"GoUsageLimitError","message":"Subscription quota exceeded. You can continue using free models."}}"#,
                "429: The free model is busy",
                Retryable,
            ),
            ("429: Free usage limit reached", "429: you are free to try again", Retryable),
            ("402: Your key is out of budget", "503: the budget planner is overloaded", Retryable),
            (
                r#"400: {"type":"error","error":{"type":"billing_error","message":"There is an issue with your billing."}}"#,
                r#"429: {"error":{"message":"Rate limit reached for gpt-4o on requests per min. Limit: 3 / min. Please try again in 20s. You can increase your rate limit by adding a payment method at https://platform.openai.com/account/billing.","type":"requests"}}"#,
                Retryable,
            ),
            (
                r#"429: {"error":{"message":"Insufficient available balance","type":"exceeded"}}"#,
                "503: the load balancer has no backend available",
                Retryable,
            ),
            (
                "429: You have reached the subscription sharing limit for this plan",
                "503: sharing of the subscription feed is overloaded",
                Retryable,
            ),
            (
                r#"429: {"error":{"code":"1308","message":"Limit reached; it resets at 2026-01-01 00:00:00"}}"#,
                r#"429: {"error":{"code":"13081","message":"slow down"}}"#,
                Retryable,
            ),
            (
                r#"429: {"error":{"code":1308,"message":"resets later"}}"#,
                r#"429: {"error":{"message":"Rate limit reached on tokens per min (TPM): Limit 10000, Used 1308, Requested 9500.","type":"tokens"}}"#,
                Retryable,
            ),
            ("error code 1308", "429: request 1308 of this minute", Retryable),
            ("[1308][Limit reached][abc]", "503: 1308 requests are waiting", Retryable),
        ],
        Fatal,
    );
}

#[test]
fn refusals_of_models_and_their_filters() {
    check(
        &[
            ("The model refused to complete the request", "the server refused the file", Fatal),
            ("Provider finish_reason: content_filter", "Provider finish_reason: odd", Fatal),
            ("Response incomplete: content_filter", "503: the content filter is overloaded", Retryable),
            (
                r#"400: {"error":{"code":"content_filter","message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."}}"#,
                r#"400: {"error":{"code":"invalid_value","message":"safety_identifier has to be a string.","type":"invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (
                r#"400: {"error":{"message":"Your request was rejected as a result of our safety system.","type":"invalid_request_error"}}"#,
                r#"400: {"error":{"message":"safetySettings.threshold is unknown","type":"invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (
                r#"403: {"error":{"message":"The model requires moderation, and your input was flagged","code":403}}"#,
                r#"403: {"error":{"message":"The input's owner is another","code":403}}"#,
                Auth,
            ),
            (
                r#"400: {"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}"#,
                "400: the inspection of the request failed",
                InvalidRequest,
            ),
            ("Provider stopped with: guardrail_intervened", "ValidationException: no such guardrail", Fatal),
        ],
        ModelRefusal,
    );
    let filtered = Evidence {
        error_type: Some("content_filter"),
        text: "Please try again with another prompt.",
        ..Evidence::default()
    };
    assert_eq!(classify(&filtered), ModelRefusal);
}

#[test]
fn limits_of_the_account_by_the_type_of_the_error() {
    for kind in ["insufficient_quota", "billing_error", "billing_not_active", "1308", "GoUsageLimitError"] {
        let evidence = Evidence { status: Some(429), error_type: Some(kind), ..Evidence::default() };
        assert_eq!(classify(&evidence), Fatal, "{kind}");
    }
    let throttled =
        Evidence { error_type: Some("throttlingException"), text: "Too many tokens", ..Evidence::default() };
    assert_eq!(classify(&throttled), Retryable);
}

#[test]
fn passing_trouble() {
    check(
        &[
            ("429: (no body)", "1429: (no body)", Fatal),
            ("500: (no body)", "501: (no body)", Fatal),
            ("502: <html><h1>Bad Gateway</h1></html>", "the picture is 502 pixels wide", Fatal),
            ("503: (no body)", "model v5.503 is odd", Fatal),
            ("504: (no body)", "505: HTTP Version Not Supported", Fatal),
            ("520: <html>Web server is returning an unknown problem</html>", "item 5200", Fatal),
            ("524: (no body)", "A524B is no model", Fatal),
            ("upstream answered 502", "upstream sent 502 messages", Fatal),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "the operator was overridden",
                Fatal,
            ),
            ("The server is busy", "a business account is needed", Fatal),
            ("The model is at capacity right now", "the capacity of this plan is one seat", Fatal),
            ("We are experiencing high demand.", "highly demanding prompts need another model", Fatal),
            (r#"{"type":"rate_limit_error","message":"slow down"}"#, "the frame rate is fixed", Fatal),
            ("Too Many Requests", "requests with too many images", Fatal),
            ("The service is temporarily unavailable", "availability differs by region", Fatal),
            (
                "ServiceUnavailableException: Bedrock is unable to process your request.",
                "ServiceException: odd",
                Fatal,
            ),
            (
                r#"{"type":"server_error","message":"The server had an issue"}"#,
                "MCP servers are no errors",
                Fatal,
            ),
            ("Internal error encountered.", "internal notes are no errors", Fatal),
            (
                "InternalServerException: The system encountered an unexpected problem",
                "internal tools only",
                Fatal,
            ),
            (
                r#"400: {"error":{"message":"Provider returned error","code":400}}"#,
                "400: the provider returned",
                InvalidRequest,
            ),
            ("RESOURCE_EXHAUSTED", "the resource is exhausting to read", Fatal),
            ("Connection refused (os error 111)", "a refused handshake", Fatal),
            ("connection reset by peer", "reset the connection settings first", Fatal),
            ("The connection was lost", "lost: the way", Fatal),
            ("connection closed before message completed", "the ticket is closed", Fatal),
            ("read ECONNRESET", "set ECONN to 1", Fatal),
            ("socket hang up", "hang on to the socket", Fatal),
            ("other side closed", "the other side is open", Fatal),
            ("getaddrinfo EAI_AGAIN api.example.com", "name the address", Fatal),
            ("Could not resolve host: api.example.com", "could not resolve the schema", Fatal),
            ("dns error: failed to lookup address information", "lookup of the tool's name", Fatal),
            (
                "upstream connect error or disconnect/reset before headers",
                "the upstream branch is gone",
                Fatal,
            ),
            ("upstream request failed", "an upstream model was named", Fatal),
            (
                "http2 error: stream error received: unspecific protocol error detected",
                "http2 is not spoken",
                Fatal,
            ),
            ("HTTP/2 stream 3 was reset", "HTTP/2 is needed", Fatal),
            ("WebSocket connection failed", "the websocket transport is not known", Fatal),
            ("WebSocket connection closed: 1006", "no websocket", Fatal),
            ("fetch failed", "fetch_page is no tool", Fatal),
            ("The request timed out", "the timing is off", Fatal),
            ("ModelTimeoutException: too slow", "the timeouts table is odd", Fatal),
            ("APITimeoutError", "the API has no timer", Fatal),
            ("Stream ended before message_stop", "the stream has no end", Fatal),
            ("request ended without sending any chunks", "send the request without chunks", Fatal),
            ("stream disconnected before completion", "disconnect the account first", Fatal),
            ("terminated", "SyntaxError: unterminated string", Fatal),
            ("The reply was interrupted", "interruptions are off", Fatal),
            ("The operation was cancelled", "cancellation is not offered", Fatal),
            (
                "An error occurred while processing your request. You can retry your request.",
                "no retries are left",
                Fatal,
            ),
            ("Please try again in 20s", "try a model that is not against this", Fatal),
        ],
        Retryable,
    );
}
