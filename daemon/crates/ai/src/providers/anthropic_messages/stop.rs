//! What the end of an answer means.

use agentd_protocol::message::StopReason;

use crate::{
    failure::{Failure, FailureKind, Refusal, classify_message, is_refusal},
    http::{Server, Step},
};

/// How an answer ended.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Ending {
    /// The reason in the provider's words.
    pub(super) reason: Option<String>,
    /// What it says beyond that.
    pub(super) explanation: Option<String>,
}

impl Ending {
    /// Notes what is news.
    pub(super) fn take(&mut self, reason: Option<String>, explanation: Option<String>) {
        let given = |text: &String| !text.trim().is_empty();
        self.reason = reason.filter(given).or(self.reason.take());
        self.explanation = explanation.filter(given).or(self.explanation.take());
    }

    /// The last step of an answer of `server`. `called` says whether the model made calls.
    pub(super) fn step(&self, server: &Server, called: bool) -> Step {
        let raw_stop_reason = self.reason.clone();
        let stop_reason = match self.reason.as_deref() {
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens") => StopReason::Length,
            // Some servers say that the turn is over though the model waits for the results of its calls.
            None | Some("end_turn" | "stop_sequence" | "pause_turn") if called => StopReason::ToolUse,
            None | Some("end_turn" | "stop_sequence" | "pause_turn") => StopReason::Stop,
            Some(other) => {
                let failure = self.failure(other, server);
                return Step::Failed { failure, raw_stop_reason };
            }
        };
        Step::Done { stop_reason, raw_stop_reason }
    }

    fn failure(&self, reason: &str, server: &Server) -> Failure {
        match reason {
            "refusal" => {
                let text = self.explanation.as_deref().unwrap_or(Refusal::wordless());
                server.failure(FailureKind::ModelRefusal, text.to_owned())
            }
            "sensitive" => {
                let text = "The provider's content policy stopped the answer (stop reason: sensitive).";
                Failure::new(FailureKind::ModelRefusal, text)
            }
            other => {
                let text = format!("Unhandled stop reason: {other}");
                let kind = if is_refusal(other) {
                    FailureKind::ModelRefusal
                } else {
                    classify_message(&server.provider, &text)
                };
                server.failure(kind, text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Redactor;

    fn step(reason: Option<&str>, explanation: Option<&str>, called: bool) -> Step {
        let url = reqwest::Url::parse("http://host/v1/messages").unwrap();
        let server = Server::new(&url, "p".into(), Redactor::default());
        let mut ending = Ending::default();
        ending.take(reason.map(str::to_owned), explanation.map(str::to_owned));
        ending.take(None, Some(" ".into()));
        ending.step(&server, called)
    }

    #[test]
    fn every_reason_has_its_meaning() {
        use StopReason::{Length, Stop, ToolUse};
        for (reason, called, expected) in [
            (Some("end_turn"), false, Stop),
            (Some("stop_sequence"), false, Stop),
            (Some("pause_turn"), false, Stop),
            (None, false, Stop),
            (Some("max_tokens"), false, Length),
            (Some("max_tokens"), true, Length),
            (Some("tool_use"), true, ToolUse),
            (Some("end_turn"), true, ToolUse),
            (None, true, ToolUse),
        ] {
            let raw_stop_reason = reason.map(str::to_owned);
            let expected = Step::Done { stop_reason: expected, raw_stop_reason };
            assert_eq!(step(reason, None, called), expected, "{reason:?}");
        }
    }

    #[test]
    fn reasons_that_are_failures() {
        use FailureKind::{ContextOverflow, Fatal, ModelRefusal};
        let check = |reason: &str, explanation: Option<&str>, kind: FailureKind, text: &str| {
            let failure = Failure::new(kind, text);
            // A session file keeps only the message, and of a refusal that it is one.
            if kind != ModelRefusal {
                assert_eq!(classify_message("p", text), kind, "{text}");
            }
            let expected = Step::Failed { failure, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), explanation, false), expected);
        };
        check("refusal", None, ModelRefusal, "The model refused to complete the request");
        check("refusal", Some("Please try again: 503."), ModelRefusal, "Please try again: 503.");
        check(
            "sensitive",
            None,
            ModelRefusal,
            "The provider's content policy stopped the answer (stop reason: sensitive).",
        );
        check("odd", None, Fatal, "Unhandled stop reason: odd");
        check(
            "model_context_window_exceeded",
            None,
            ContextOverflow,
            "Unhandled stop reason: model_context_window_exceeded",
        );
    }
}
