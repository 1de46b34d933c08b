//! The values that the semantic conventions define. Pure.

use agentd_ai::failure::{Failure, FailureKind};
use agentd_protocol::message::{AssistantMessage, StopReason};
use serde::Serialize;

use crate::data::Value;

/// The provider's name in the conventions, where they have one for it.
pub(super) fn provider(id: &str) -> String {
    match id {
        "amazon-bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "google" => "gcp.gemini",
        "google-vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "openai-codex" => "openai",
        "xai" => "x_ai",
        other => other,
    }
    .to_owned()
}

/// Why an answer ended: the provider's own word where it is known.
pub(super) fn finish_reason(answer: &AssistantMessage) -> String {
    let word = match answer.stop_reason {
        StopReason::Stop | StopReason::Pending | StopReason::Deferred => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
    };
    answer.raw_stop_reason.clone().unwrap_or_else(|| word.to_owned())
}

/// The kind of the error of an answer that failed; `None` for one that did not, or was aborted.
pub(super) fn error_type(answer: &AssistantMessage, failure: Option<&Failure>) -> Option<Value> {
    if answer.stop_reason != StopReason::Error {
        return None;
    }
    if failure.is_some_and(|failure| failure.stall.is_some()) {
        return Some("timeout".into());
    }
    Some(match failure.map(|failure| failure.kind) {
        Some(FailureKind::Retryable) => "unavailable".into(),
        Some(FailureKind::ContextOverflow) => "context_overflow".into(),
        Some(FailureKind::Auth) => "auth".into(),
        Some(FailureKind::InvalidRequest) => "invalid_request".into(),
        Some(FailureKind::ModelRefusal) => "model_refused".into(),
        Some(FailureKind::BudgetReached) => "limit_reached".into(),
        Some(FailureKind::Aborted | FailureKind::Fatal) | None => match answer.code {
            Some(code) => word(&code).into(),
            None => "_OTHER".into(),
        },
    })
}

/// The name of an enumeration's value in the protocol.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        // Not an enumeration of words.
        _ => "_OTHER".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{compaction::CompactionReason, error::ErrorCode};

    use super::*;

    fn answer(stop_reason: StopReason) -> AssistantMessage {
        AssistantMessage { stop_reason, ..AssistantMessage::pending("a", "p", "m", 0) }
    }

    #[test]
    fn errors_have_few_names() {
        let check = |answer: AssistantMessage, failure: Option<Failure>, expected: Option<&'static str>| {
            assert_eq!(error_type(&answer, failure.as_ref()), expected.map(Value::from));
        };
        let failed = || answer(StopReason::Error);
        check(answer(StopReason::Stop), None, None);
        check(answer(StopReason::Aborted), Some(Failure::aborted()), None);
        check(failed(), Some(Failure::new(FailureKind::Retryable, "500: x")), Some("unavailable"));
        check(failed(), Some(Failure::new(FailureKind::Auth, "401: x")), Some("auth"));
        check(failed(), None, Some("_OTHER"));
        let refused = AssistantMessage { code: Some(ErrorCode::ModelRefused), ..failed() };
        assert_eq!(error_type(&refused, None), Some(Value::from("model_refused".to_owned())));
    }

    #[test]
    fn names_of_the_conventions() {
        assert_eq!(provider("google"), "gcp.gemini");
        assert_eq!(provider("anthropic"), "anthropic");
        assert_eq!(finish_reason(&answer(StopReason::ToolUse)), "tool_calls");
        let told = AssistantMessage { raw_stop_reason: Some("end_turn".into()), ..answer(StopReason::Stop) };
        assert_eq!(finish_reason(&told), "end_turn");
        assert_eq!(word(&CompactionReason::Threshold), "threshold");
    }
}
