//! The stop reasons of this API and what they mean for an answer.

use agentd_protocol::message::StopReason;

use crate::{
    failure::{Failure, FailureKind, classify_message, is_refusal},
    http::{DecodeStep, Server},
};

/// The longest part of the provider's explanation that is shown, in characters.
const MAX_SHOWN: usize = 300;

/// The end of an answer.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) enum Ending {
    /// The model stopped.
    Finished(Reason),
    /// The prompt was blocked before the model saw it.
    Blocked(Reason),
}

/// A reason in the provider's words.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Reason {
    pub(super) name: String,
    pub(super) message: Option<String>,
}

impl Ending {
    /// The last step of an answer of `server`. `called`: the model made tool calls.
    pub(super) fn step(&self, server: &Server, called: bool) -> DecodeStep {
        let (reason, is_blocked) = match self {
            Self::Finished(reason) => (reason, false),
            Self::Blocked(reason) => (reason, true),
        };
        let raw_stop_reason = Some(reason.name.clone());
        let stop_reason = match (self, reason.name.as_str()) {
            (Self::Finished(_), "STOP") if called => StopReason::ToolUse,
            (Self::Finished(_), "STOP") => StopReason::Stop,
            (Self::Finished(_), "MAX_TOKENS") => StopReason::Length,
            // A stop reason of servers that imitate this API.
            (Self::Finished(_), "FUNCTION_CALL") if called => StopReason::ToolUse,
            _ => {
                let failure = reason.failure(is_blocked, server);
                return DecodeStep::Failed { failure, raw_stop_reason };
            }
        };
        DecodeStep::Done { stop_reason, raw_stop_reason }
    }
}

impl Reason {
    /// `is_blocked`: the model never saw the prompt, which counts as a refusal whatever the reason.
    fn failure(&self, is_blocked: bool, server: &Server) -> Failure {
        let what = if is_blocked { "The provider blocked the prompt" } else { "Provider stopped with" };
        let mut text = format!("{what}: {}", self.name);
        if let Some(words) = words(&self.name) {
            text.push_str(&format!(" ({words})"));
        }
        if let Some(message) = self.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
            let shown: String = message.chars().take(MAX_SHOWN).collect();
            text.push_str(&format!(": {shown}"));
        }
        let kind = if is_blocked || is_refusal(&self.name) {
            FailureKind::ModelRefusal
        } else {
            // A session file keeps only the text, so the kind has to follow from it.
            classify_message(&server.provider, &text)
        };
        server.failure(kind, text)
    }
}

/// A reason in words. Unless the reason is a refusal, the classifier tells the kind of failure by these words: `try again` means retryable.
fn words(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "SAFETY" | "IMAGE_SAFETY" => "the provider's safety filter",
        "PROHIBITED_CONTENT" | "IMAGE_PROHIBITED_CONTENT" => "prohibited by the provider's content policy",
        "BLOCKLIST" => "a term on the provider's block list, part of its content policy",
        "SPII" => "sensitive personal data, which the provider's content policy keeps back",
        "RECITATION" | "IMAGE_RECITATION" => {
            "the answer repeats a text of others too closely for the provider's content policy"
        }
        "JAILBREAK" | "MODEL_ARMOR" => "taken for an attack by the provider's safety filter",
        "LANGUAGE" => "a language that the model does not support",
        "MALFORMED_FUNCTION_CALL" => "the model wrote a tool call that cannot be read; try again",
        "MALFORMED_RESPONSE" => "the model wrote an answer that cannot be read; try again",
        "UNEXPECTED_TOOL_CALL" => "the model called a tool that does not exist; try again",
        "TOO_MANY_TOOL_CALLS" => "the model made more tool calls in a row than the provider allows",
        "MISSING_THOUGHT_SIGNATURE" => "a signature of earlier thinking is missing",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Redactor;

    fn server() -> Server {
        let url = reqwest::Url::parse("http://host/v1").unwrap();
        Server::new(&url, "p".into(), Redactor::default())
    }

    fn reason(name: &str, message: Option<&str>) -> Reason {
        Reason { name: name.into(), message: message.map(str::to_owned) }
    }

    #[test]
    fn good_ends() {
        use StopReason::{Length, Stop, ToolUse};
        for (name, called, expected) in [
            ("STOP", false, Stop),
            ("STOP", true, ToolUse),
            ("MAX_TOKENS", false, Length),
            ("MAX_TOKENS", true, Length),
            ("FUNCTION_CALL", true, ToolUse),
        ] {
            let raw_stop_reason = Some(name.to_owned());
            let expected = DecodeStep::Done { stop_reason: expected, raw_stop_reason };
            assert_eq!(Ending::Finished(reason(name, None)).step(&server(), called), expected);
        }
    }

    #[test]
    fn other_ends_are_failures_with_words() {
        use FailureKind::{Fatal, ModelRefusal, Retryable};
        let check = |ending: Ending, name: &str, kind: FailureKind, text: &str| {
            let expected = DecodeStep::Failed {
                failure: Failure::new(kind, text),
                raw_stop_reason: Some(name.to_owned()),
            };
            assert_eq!(ending.step(&server(), false), expected);
        };
        for (name, kind) in [
            ("SAFETY", ModelRefusal),
            ("IMAGE_SAFETY", ModelRefusal),
            ("PROHIBITED_CONTENT", ModelRefusal),
            ("IMAGE_PROHIBITED_CONTENT", ModelRefusal),
            ("BLOCKLIST", ModelRefusal),
            ("SPII", ModelRefusal),
            ("RECITATION", ModelRefusal),
            ("JAILBREAK", ModelRefusal),
            ("LANGUAGE", Fatal),
            ("MALFORMED_FUNCTION_CALL", Retryable),
            ("MALFORMED_RESPONSE", Retryable),
            ("UNEXPECTED_TOOL_CALL", Retryable),
            ("TOO_MANY_TOOL_CALLS", Fatal),
            ("MISSING_THOUGHT_SIGNATURE", Fatal),
        ] {
            let text = format!("Provider stopped with: {name} ({})", words(name).unwrap());
            check(Ending::Finished(reason(name, None)), name, kind, &text);
        }
        for name in ["OTHER", "FUNCTION_CALL", "FINISH_REASON_UNSPECIFIED", "NO_IMAGE", "NEW"] {
            check(
                Ending::Finished(reason(name, None)),
                name,
                Fatal,
                &format!("Provider stopped with: {name}"),
            );
        }
        check(
            Ending::Blocked(reason("SAFETY", Some(" Too bad. "))),
            "SAFETY",
            ModelRefusal,
            "The provider blocked the prompt: SAFETY (the provider's safety filter): Too bad.",
        );
        // A blocked prompt is a refusal, whatever the reason.
        check(
            Ending::Blocked(reason("STOP", None)),
            "STOP",
            ModelRefusal,
            "The provider blocked the prompt: STOP",
        );
    }
}
