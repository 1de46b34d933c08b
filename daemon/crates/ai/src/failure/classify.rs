//! Decides what a failure means from what the provider said: status first, then error type, then text.

use agentd_protocol::{
    error::ErrorCode,
    message::{AssistantMessage, StopReason},
};

use super::{
    FailureKind,
    patterns::{
        ACCOUNT_LIMIT, AUTH, INVALID_REQUEST, MODEL_REFUSAL, NOT_OVERFLOW, OVERFLOW, RETRYABLE,
        RETRYABLE_STATUS, RETRYABLE_WORDS, THROTTLED,
    },
    text::Words,
};

/// What is known of a failure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The HTTP status, or the number that the provider gave instead of one.
    pub status: Option<u16>,
    /// The provider's name for the kind of error.
    pub error_type: Option<&'a str>,
    /// What the provider said, without the status.
    pub text: &'a str,
}

/// Decides what a failure means.
///
/// Case, and the difference between spaces, dashes and underscores, do not matter; numbers count only as whole numbers.
#[must_use]
pub fn classify(evidence: &Evidence<'_>) -> FailureKind {
    let text = Words::new(evidence.text);
    if is_overflow(evidence, &text) {
        return FailureKind::ContextOverflow;
    }
    let kind = Words::new(evidence.error_type.unwrap_or_default());
    let says = |patterns: &[&str]| kind.hold_any(patterns) || text.hold_any(patterns);
    if kind.has_number(1308) || tells_of_account_limit(&kind) || tells_of_account_limit(&text) {
        return FailureKind::Fatal;
    }
    match evidence.status {
        Some(401) => return FailureKind::Auth,
        Some(status) if RETRYABLE_STATUS.contains(&status) => return FailureKind::Retryable,
        _ => {}
    }
    if kind.hold_any(MODEL_REFUSAL) {
        return FailureKind::ModelRefusal;
    }
    let asks_not_to =
        text.hold_any(&["do not retry", "don't retry", "not retryable", "retry your request with the id"]);
    let retryable =
        |words: &Words| words.hold_any(RETRYABLE) || RETRYABLE_WORDS.iter().any(|word| words.has_word(word));
    if retryable(&kind) || (retryable(&text) && !asks_not_to) {
        return FailureKind::Retryable;
    }
    // Before the status: filters answer with 400 or 403.
    if text.hold_any(MODEL_REFUSAL) {
        return FailureKind::ModelRefusal;
    }
    if evidence.status == Some(403) || says(AUTH) {
        return FailureKind::Auth;
    }
    if matches!(evidence.status, Some(400 | 404 | 422)) || says(INVALID_REQUEST) {
        return FailureKind::InvalidRequest;
    }
    if evidence.status.is_none() && RETRYABLE_STATUS.iter().any(|status| text.has_number(*status)) {
        return FailureKind::Retryable;
    }
    FailureKind::Fatal
}

/// [`classify`] for a failure of which only the `errorMessage` is left; a leading `<status>:` counts as the status.
#[must_use]
pub fn classify_message(provider: &str, message: &str) -> FailureKind {
    let (status, text) = split_status(message);
    classify(&Evidence { provider, status, error_type: None, text })
}

/// What kept a stored answer from being a good one; `None` when nothing did.
///
/// Besides failed answers, these were too long for a context window of `context_window` tokens (0 if unknown): a `stop`
/// whose input is above the window, and a `length` without output whose input fills 99 % of it.
#[must_use]
pub fn classify_answer(answer: &AssistantMessage, context_window: u64) -> Option<FailureKind> {
    let input = answer.usage.input + answer.usage.cache_read;
    let known = context_window > 0;
    match answer.stop_reason {
        // The text of a refusal may be the model's own words, which mean nothing to a classifier.
        StopReason::Error if answer.code == Some(ErrorCode::ModelRefused) => Some(FailureKind::ModelRefusal),
        StopReason::Error => {
            let message = answer.error_message.as_deref().unwrap_or_default();
            Some(classify_message(&answer.provider, message))
        }
        StopReason::Aborted => Some(FailureKind::Aborted),
        StopReason::Stop if known && input > context_window => Some(FailureKind::ContextOverflow),
        StopReason::Length
            if known && answer.usage.output == 0 && input * 100 >= context_window.saturating_mul(99) =>
        {
            Some(FailureKind::ContextOverflow)
        }
        _ => None,
    }
}

fn is_overflow(evidence: &Evidence<'_>, text: &Words) -> bool {
    if evidence.status == Some(413) {
        return true;
    }
    // Its 413 is taken care of above.
    if evidence.provider == "cerebras" && evidence.status == Some(400) && text.is_empty_body() {
        return true;
    }
    if evidence.status == Some(429) || text.begins_with_any(THROTTLED) {
        return false;
    }
    let kind = Words::new(evidence.error_type.unwrap_or_default());
    if text.hold_any(NOT_OVERFLOW) || kind.begins_with_any(THROTTLED) {
        return false;
    }
    kind.hold_any(OVERFLOW) || text.hold_any(OVERFLOW) || text.number_of_tokens_after("exceeds the limit of")
}

/// Whether the text of a failure tells of a limit of the account, which does not pass in a moment.
#[must_use]
pub fn is_account_limit(message: &str) -> bool {
    tells_of_account_limit(&Words::new(message))
}

fn tells_of_account_limit(text: &Words) -> bool {
    text.hold_any(ACCOUNT_LIMIT)
        || is_spent_quota(text)
        || text.holds_outside_addresses("billing")
        || text.has_code(1308)
}

/// Whether a quota is used up, in whatever words.
fn is_spent_quota(text: &Words) -> bool {
    // Google says this of a moment as well as of a day; "check quota" is its advice, not its finding.
    if text.hold_any(&["resource has been exhausted (e.g. check quota)"]) {
        return false;
    }
    text.has_word("quota") && text.hold_any(&["exceed", "insufficient", "exhausted", "used up", "reached"])
}

/// The status at the front of an error text, and the rest.
fn split_status(message: &str) -> (Option<u16>, &str) {
    let message = message.trim_start();
    let digits = message.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &message[digits..];
    if digits == 3 && (rest.is_empty() || rest.starts_with([':', ' '])) {
        let status = message[..3].parse().ok().filter(|status| (400..600).contains(status));
        if status.is_some() {
            return (status, rest.trim_start_matches([':', ' ']));
        }
    }
    (None, message)
}

#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;
