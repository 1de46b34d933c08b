//! How an answer ended.

use agentd_protocol::message::StopReason;

use super::{trouble, wire::incoming::Response};
use crate::{
    failure::{FailureKind, classify_message, is_refusal},
    http::{Server, Step},
};

/// The end that a response object tells of. `event` is the status that its event has in its name; `called` says whether
/// the model made a tool call.
pub(super) fn outcome(server: &Server, event: &str, response: &Response<'_>, called: bool) -> Step {
    let has_error = response.error.is_some_and(|error| error.get().starts_with(['{', '"']));
    let status = match response.status.as_deref() {
        _ if event == "failed" || (has_error && event != "cancelled") => "failed",
        Some(status @ ("completed" | "incomplete" | "failed" | "cancelled")) => status,
        // Some servers still say `in_progress` there.
        _ => event,
    };
    match status {
        "incomplete" => incomplete(server, response),
        "failed" | "cancelled" => Step::Failed {
            failure: trouble::of_response(server, status, response),
            raw_stop_reason: Some(status.to_owned()),
        },
        _ => Step::Done {
            stop_reason: if called { StopReason::ToolUse } else { StopReason::Stop },
            raw_stop_reason: Some(status.to_owned()),
        },
    }
}

fn incomplete(server: &Server, response: &Response<'_>) -> Step {
    let reason = trouble::incomplete_reason(response).unwrap_or_else(|| "unknown".to_owned());
    if reason == "max_output_tokens" {
        return Step::Done { stop_reason: StopReason::Length, raw_stop_reason: Some(reason) };
    }
    let message = format!("Response incomplete: {reason}");
    let kind = if is_refusal(&reason) {
        FailureKind::ModelRefusal
    } else {
        classify_message(&server.provider, &message)
    };
    Step::Failed { failure: server.failure(kind, message), raw_stop_reason: Some(reason) }
}
