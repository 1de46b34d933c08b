//! How a one-shot conversation ends: the exit code, and what is said on stderr.

use agentd_protocol::{
    error::Failure,
    message::{AssistantMessage, ContentBlock, StopReason},
};

use super::FAILED;

/// What stderr says of an answer that was cut off.
const TRUNCATED: &str = "Response was truncated: the model reached its output token limit.";

/// The end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The exit code.
    pub(super) code: u8,
    /// What stderr is told.
    pub(super) message: Option<String>,
}

impl Outcome {
    pub(super) fn done() -> Self {
        Self { code: 0, message: None }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: Some(message.into()) }
    }

    /// A prompt was not accepted.
    pub(super) fn refused(failure: &Failure) -> Self {
        let hint = failure.hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        Self::failed(format!("{}{hint}", failure.error))
    }

    /// The session ended while it was at work.
    pub(super) fn ended() -> Self {
        Self::failed("Error: the session ended before the answer was complete")
    }
}

/// Why a message is no answer; `None` for one that is, if only the beginning of one.
pub(super) fn failure(answer: &AssistantMessage) -> Option<String> {
    let default = match answer.stop_reason {
        StopReason::Error => "Request error",
        StopReason::Aborted => "Request aborted",
        _ => return None,
    };
    Some(answer.error_message.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned()))
}

/// What the last answer means in text mode: what stdout gets, and how it ends. Without an answer nothing is wrong: a
/// command took the prompt.
pub(super) fn of_text(last: Option<&AssistantMessage>) -> (String, Outcome) {
    let Some(answer) = last else { return (String::new(), Outcome::done()) };
    if let Some(message) = failure(answer) {
        return (String::new(), Outcome::failed(message));
    }
    let texts = answer.content.iter().filter_map(ContentBlock::as_text);
    let text = texts.map(|text| format!("{text}\n")).collect();
    match answer.stop_reason {
        StopReason::Length => (text, Outcome::failed(TRUNCATED)),
        _ => (text, Outcome::done()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &[&str], stop: StopReason, error: Option<&str>, expected: (&str, u8, Option<&str>)) {
        let answer = AssistantMessage {
            content: content.iter().map(|text| ContentBlock::text(*text)).collect(),
            stop_reason: stop,
            error_message: error.map(str::to_owned),
            ..AssistantMessage::pending("a", "p", "m", 0)
        };
        let (text, outcome) = of_text(Some(&answer));
        assert_eq!((text.as_str(), outcome.code, outcome.message.as_deref()), expected);
    }

    #[test]
    fn the_last_answer_decides() {
        check(&["a", "b"], StopReason::Stop, None, ("a\nb\n", 0, None));
        check(&["a"], StopReason::Length, None, ("a\n", 1, Some(TRUNCATED)));
        check(&["a"], StopReason::Error, Some("503"), ("", 1, Some("503")));
        check(&[], StopReason::Error, None, ("", 1, Some("Request error")));
        check(&["a"], StopReason::Aborted, Some(""), ("", 1, Some("Request aborted")));
        assert_eq!(of_text(None), (String::new(), Outcome::done()));
    }
}
