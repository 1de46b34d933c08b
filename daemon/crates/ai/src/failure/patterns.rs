//! What providers say, in the form that [`Words`](super::text::Words) compares: lower case, with spaces for dashes and
//! underscores; `#` stands for a number, `*` for anything.

/// The transcript is too long for the model.
pub(super) const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "input is too long for requested model",
    "request too large",
    "too many tokens",
    "context length exceeded",
    "contextwindowexceedederror",
    "maximum context length is #",
    "exceeds the context window",
    "reduce the length of the messages",
    "token limit exceeded",
    "tokens exceed the configured limit of #",
    "input token count*exceeds the maximum",
    "maximum prompt length is #",
    "exceeds the model's maximum context length",
    "too large for model with # maximum context length",
    "prompt has # tokens, but the configured context size is # tokens",
    "exceeds maximum allowed input length of # tokens",
    "exceeds the maximum allowed input length of # tokens",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "longer than the model's context length",
    "exceed context size error",
    "exceeded model token limit",
    "prompt exceeds max length",
    "prompt too long; exceeded context length",
    "prompt too long; exceeded max context length",
    "range of input length should be",
    "model context window exceeded",
];

/// Texts that sound like the above but speak of requests per time.
pub(super) const NOT_OVERFLOW: &[&str] =
    &["rate limit", "too many requests", "tokens per minute", "tokens per day", "per day token limit"];

/// A limit of the account, not of the moment.
pub(super) const ACCOUNT_LIMIT: &[&str] = &[
    "insufficient quota",
    "quota exceeded",
    "exceeded your current quota",
    "monthly limit",
    "monthly usage",
    "monthly spend",
    "monthly token limit",
    "free usage",
    "usage limit",
    "out of budget",
    "budget exceeded",
    "exceeded your budget",
    "billing",
    "available balance",
    "insufficient balance",
    "insufficient credit",
    "out of credits",
    "subscription sharing",
    // Ours, of a server that wants more patience than there is.
    "retry delay (max",
];

/// Statuses of trouble that passes.
pub(super) const RETRYABLE_STATUS: &[u16] = &[429, 500, 502, 503, 504, 520, 524, 529];

/// Texts of trouble that passes.
pub(super) const RETRYABLE: &[&str] = &[
    "overloaded",
    "at capacity",
    "high demand",
    "rate limit",
    "ratelimit",
    "throttling",
    "too many requests",
    "server error",
    "internal error",
    // A type of error, in its JSON.
    "\"api error\"",
    "bad gateway",
    "gateway time",
    "provider returned error",
    "resource exhausted",
    "resource has been exhausted",
    "connection refused",
    "connection reset",
    "connection lost",
    "lost connection",
    "connection closed",
    "connection was closed",
    "connection error",
    "connection aborted",
    "connection dropped",
    "broken pipe",
    "network error",
    "network is unreachable",
    "no route to host",
    "socket hang up",
    "other side closed",
    "name resolution",
    "name or service not known",
    "failed to lookup address",
    "dns error",
    "getaddrinfo",
    "upstream connect",
    "upstream request",
    "http2 stream",
    "http/2 stream",
    "websocket closed",
    "websocket failed",
    "websocket error",
    "fetch failed",
    "timed out",
    "time out",
    "deadline exceeded",
    "stream ended",
    "stream was cut",
    "ended before",
    "ended early",
    "ended prematurely",
    "premature close",
    "premature end",
    "unexpected eof",
    "unexpected end of file",
    "incompletemessage",
    "try again",
    "please retry",
    "retry your request",
    "retry the request",
    "retry later",
    "you can retry",
];

/// Single words of the same meaning.
pub(super) const RETRYABLE_WORDS: &[&str] = &[
    "busy",
    "unavailable",
    "timeout",
    "disconnected",
    "terminated",
    "interrupted",
    "cancelled",
    "canceled",
    "econnreset",
    "econnrefused",
    "enotfound",
    "etimedout",
    "epipe",
];

/// The key is missing or refused.
pub(super) const AUTH: &[&str] = &[
    "authentication error",
    "authentication failed",
    "permission error",
    "permission denied",
    "invalid api key",
    "incorrect api key",
    "invalid x api key",
    "api key not valid",
    "no api key",
    "missing api key",
    "unauthorized",
    "unauthenticated",
    "forbidden",
];

/// The provider refused the request or its content.
pub(super) const REFUSED: &[&str] = &[
    "invalid request error",
    "content filter",
    "content policy",
    "content management policy",
    "refused to complete",
    "safety",
    "model not found",
    "does not exist",
];
