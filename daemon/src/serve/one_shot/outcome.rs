//! How a one-shot conversation ends: the exit code, and what is said on stderr.

use agentd_protocol::{
    error::{ErrorCode, Failure},
    message::{AssistantMessage, ContentBlock, StopReason},
};

use super::{FAILED, REFUSED};

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

    /// The last answer failed, which stderr is told.
    fn unanswered(answer: &AssistantMessage, message: String) -> Self {
        Self { code: code_of(answer), message: Some(message) }
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

/// The exit code of a failed answer.
fn code_of(answer: &AssistantMessage) -> u8 {
    if answer.code == Some(ErrorCode::ModelRefused) { REFUSED } else { FAILED }
}

/// What the last answer means where events are shown. They tell what went wrong, and a failure is an event like others; that the
/// model refused is told by the exit code too.
pub(super) fn of_events(last: Option<&AssistantMessage>) -> Outcome {
    match last.map(code_of) {
        Some(REFUSED) => Outcome { code: REFUSED, message: None },
        _ => Outcome::done(),
    }
}

/// What the last answer means in text mode: what stdout gets, and how it ends. Without an answer nothing is wrong: a
/// command took the prompt.
pub(super) fn of_text(last: Option<&AssistantMessage>) -> (String, Outcome) {
    let Some(answer) = last else { return (String::new(), Outcome::done()) };
    if let Some(message) = failure(answer) {
        return (String::new(), Outcome::unanswered(answer, message));
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

    #[test]
    fn a_refusal_has_a_code_of_its_own() {
        let refused = AssistantMessage {
            content: vec![ContentBlock::text("No.")],
            stop_reason: StopReason::Error,
            error_message: Some("The model refused: No.".into()),
            code: Some(ErrorCode::ModelRefused),
            ..AssistantMessage::pending("a", "p", "m", 0)
        };
        let (text, outcome) = of_text(Some(&refused));
        assert_eq!((text.as_str(), outcome.code), ("", 4));
        assert_eq!(outcome.message.as_deref(), Some("The model refused: No."));
        assert_eq!(of_events(Some(&refused)), Outcome { code: 4, message: None });
        let failed = AssistantMessage { code: None, ..refused };
        assert_eq!(of_events(Some(&failed)), Outcome::done());
    }
}
