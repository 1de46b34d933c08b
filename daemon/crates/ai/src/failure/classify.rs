//! Classifies failures by the provider's status, error type and text, in this order. Pure.

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
};

/// The facts about a failure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The HTTP status, or the number that the provider gave instead of one.
    pub status: Option<u16>,
    /// The provider's name for the kind of error.
    pub error_type: Option<&'a str>,
    /// The provider's text, without the status.
    pub text: &'a str,
}

/// Classifies a failure.
///
/// Ignores case, and the difference between spaces, dashes and underscores. Numbers match only as whole numbers.
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

/// Classifies a stored answer; `None` if it did not fail.
///
/// Besides failed answers, these were too long for a context window of `context_window` tokens (0 if unknown): a `stop`
/// whose input is above the window, and a `length` without output whose input fills 99 % of it.
#[must_use]
pub fn classify_answer(answer: &AssistantMessage, context_window: u64) -> Option<FailureKind> {
    let input = answer.usage.input + answer.usage.cache_read;
    let known = context_window > 0;
    match answer.stop_reason {
        // The text of a refusal may be the model's own words, which cannot be classified.
        StopReason::Error if answer.code == Some(ErrorCode::ModelRefused) => Some(FailureKind::ModelRefusal),
        StopReason::Error if answer.code == Some(ErrorCode::LimitReached) => Some(FailureKind::BudgetReached),
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
    // Cerebras answers 400 or 413 without a body.
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

/// Whether the text of a failure names a limit of the account, which does not pass in a moment.
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
    // Google sends this text for limits of a moment as well as of a day; "check quota" is only its advice.
    if text.hold_any(&["resource has been exhausted (e.g. check quota)"]) {
        return false;
    }
    text.has_word("quota") && text.hold_any(&["exceed", "insufficient", "exhausted", "used up", "reached"])
}

/// The HTTP status that an `errorMessage` begins with (`529: Overloaded`), if it begins with one.
#[must_use]
pub fn stated_status(message: &str) -> Option<u16> {
    split_status(message).0
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

/// Units: a number before one of them is an amount and not a status.
const UNITS: &[&str] = &[
    "token",
    "tokens",
    "character",
    "characters",
    "chars",
    "message",
    "messages",
    "image",
    "images",
    "pixel",
    "pixels",
    "px",
    "item",
    "items",
    "request",
    "requests",
    "file",
    "files",
    "page",
    "pages",
    "tool",
    "tools",
    "byte",
    "bytes",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "ms",
    "milliseconds",
    "second",
    "seconds",
    "s",
    "minutes",
    "line",
    "lines",
    "word",
    "words",
    "dollars",
    "usd",
    "%",
];

/// A text made comparable: lower case, `_` and `-` and white space as single spaces.
pub(super) struct Words(String);

impl Words {
    pub(super) fn new(text: &str) -> Self {
        let mut words = String::with_capacity(text.len());
        for character in text.chars() {
            if character == '_' || character == '-' || character.is_whitespace() {
                if !words.ends_with(' ') {
                    words.push(' ');
                }
            } else {
                words.extend(character.to_lowercase());
            }
        }
        Self(words.trim().to_owned())
    }

    /// Whether any of the patterns is in the text: `#` stands for a number, `*` for anything.
    pub(super) fn hold_any(&self, patterns: &[&str]) -> bool {
        !self.0.is_empty() && patterns.iter().any(|pattern| self.holds(pattern))
    }

    pub(super) fn begins_with_any(&self, starts: &[&str]) -> bool {
        starts.iter().any(|start| self.0.starts_with(start))
    }

    /// Whether this stands for an error without a body.
    pub(super) fn is_empty_body(&self) -> bool {
        self.0.is_empty() || self.0 == "(no body)" || self.0 == "status code (no body)"
    }

    /// Whether a word stands in the text by itself.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.0.match_indices(word).any(|(at, _)| {
            let before = self.0[..at].chars().next_back();
            let after = self.0[at + word.len()..].chars().next();
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
    }

    /// Whether a number stands in the text by itself and is not an amount.
    pub(super) fn has_number(&self, number: u16) -> bool {
        let digits = number.to_string();
        self.0.match_indices(&digits).any(|(at, _)| {
            let before = self.0[..at].chars().next_back();
            let rest = &self.0[at + digits.len()..];
            let mut following = rest.chars();
            let after = following.next();
            let fraction =
                matches!(after, Some('.' | ',')) && following.next().is_some_and(|c| c.is_ascii_digit());
            let joined = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | ',' | '$'))
                || after.is_some_and(char::is_alphanumeric)
                || fraction;
            !joined && !UNITS.contains(&first_word(rest))
        })
    }

    /// Whether the text has a number as a code: `"code":"1308"`, `code 1308`, `[1308]`.
    pub(super) fn has_code(&self, number: u16) -> bool {
        let digits = number.to_string();
        self.0.match_indices(&digits).any(|(at, _)| {
            let (before, after) = (&self.0[..at], &self.0[at + digits.len()..]);
            let bracketed = before.ends_with('[') && after.starts_with(']');
            let named = before.trim_end_matches(['"', ':', ' ', '=']).ends_with("code");
            bracketed || (named && !before.ends_with("code") && !after.starts_with(char::is_alphanumeric))
        })
    }

    /// Whether the text holds a word outside of web addresses.
    pub(super) fn holds_outside_addresses(&self, word: &str) -> bool {
        self.0.split(' ').filter(|part| !part.contains("://")).any(|part| part.contains(word))
    }

    /// Whether `start` is followed by a number of tokens, or by a bare number.
    pub(super) fn number_of_tokens_after(&self, start: &str) -> bool {
        self.0.match_indices(start).any(|(at, _)| {
            let rest = self.0[at + start.len()..].trim_start();
            let Some(rest) = skip_number(rest) else { return false };
            let unit = first_word(rest);
            !rest.starts_with(char::is_alphanumeric) && (unit.starts_with("token") || !UNITS.contains(&unit))
        })
    }

    fn holds(&self, pattern: &str) -> bool {
        let end = pattern.find(['#', '*']).unwrap_or(pattern.len());
        let first = &pattern[..end];
        self.0.match_indices(first).any(|(at, _)| matches(&self.0[at..], pattern))
    }
}

/// Whether `text` begins with what `pattern` describes.
fn matches(text: &str, pattern: &str) -> bool {
    let end = pattern.find(['#', '*']).unwrap_or(pattern.len());
    let Some(text) = text.strip_prefix(&pattern[..end]) else { return false };
    let pattern = &pattern[end..];
    if let Some(rest) = pattern.strip_prefix('#') {
        return skip_number(text).is_some_and(|text| matches(text, rest));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        return text.find(rest).is_some();
    }
    true
}

/// The text after a number with its separators and an optional bracket; `None` without a number.
fn skip_number(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(').unwrap_or(text);
    inner
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| inner.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.'))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '%').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;
