//! What the end of an answer means.

use agentd_protocol::message::StopReason;

use crate::{
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{Server, Step},
};

/// The last step of an answer of `server` that ended for `reason`. `called` says whether the model made calls.
pub(super) fn last_step(reason: Option<&str>, called: bool, server: &Server) -> Step {
    let stop_reason = match reason {
        // Some models say that the turn is over though they wait for the results of their calls.
        Some("end_turn" | "stop_sequence") if called => StopReason::ToolUse,
        Some("end_turn" | "stop_sequence") => StopReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("tool_use") => StopReason::ToolUse,
        Some(other) => {
            let text = format!("Provider stopped with: {other}");
            let kind = if is_refusal(other) {
                FailureKind::ModelRefusal
            } else {
                classify_message(&server.provider, &text)
            };
            let failure = server.failure(kind, text);
            return Step::Failed { failure, raw_stop_reason: Some(other.to_owned()) };
        }
        None => {
            let text = "Bedrock stream ended without a stop reason";
            return Step::failed(Failure::new(FailureKind::Retryable, text));
        }
    };
    Step::Done { stop_reason, raw_stop_reason: reason.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Redactor;

    fn step(reason: Option<&str>, called: bool) -> Step {
        let url = reqwest::Url::parse("http://host/").unwrap();
        last_step(reason, called, &Server::new(&url, "p".into(), Redactor::default()))
    }

    #[test]
    fn every_reason_has_its_meaning() {
        use StopReason::{Length, Stop, ToolUse};
        for (reason, called, stop_reason) in [
            ("end_turn", false, Stop),
            ("end_turn", true, ToolUse),
            ("stop_sequence", false, Stop),
            ("tool_use", true, ToolUse),
            ("max_tokens", true, Length),
            ("model_context_window_exceeded", false, Length),
        ] {
            let expected = Step::Done { stop_reason, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), called), expected);
        }
    }

    #[test]
    fn reasons_that_are_failures() {
        use FailureKind::{Fatal, ModelRefusal};
        for (reason, kind) in [
            ("guardrail_intervened", ModelRefusal),
            ("content_filtered", ModelRefusal),
            ("refusal", ModelRefusal),
            ("malformed_model_output", Fatal),
            ("odd", Fatal),
        ] {
            let failure = Failure::new(kind, format!("Provider stopped with: {reason}"));
            let expected = Step::Failed { failure, raw_stop_reason: Some(reason.to_owned()) };
            assert_eq!(step(Some(reason), false), expected);
        }
        let Step::Failed { failure, raw_stop_reason: None } = step(None, true) else { panic!() };
        assert_eq!(failure.kind, FailureKind::Retryable);
        // A session file keeps only the message: it has to say the same.
        assert_eq!(classify_message("p", &failure.message), failure.kind);
    }
}
