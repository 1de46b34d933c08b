//! Answering those who called.

use agentd_protocol::error::{ErrorCode, Failure};
use agentd_translator::{
    Answer,
    rpc::{RpcError, write_error, write_notification, write_result},
    with_hint,
};
use serde_json::{Value, json, value::RawValue};

use super::state::{Caller, Effects, Server, Work};
use crate::results::{of_era, tool_error};

/// What the user does to get a model.
pub(super) const HOW_TO_GET_A_MODEL: &str = "Somebody has to run `agentctl setup` or `agentctl login` in a terminal; `agentctl doctor` says what is missing.";

impl Server {
    /// Answers with a result that is complete.
    pub(super) fn done(&self, caller: &Caller, result: Value, effects: &mut Effects) {
        let result = of_era(caller.era, &self.options.version, "complete", result);
        write_result(&caller.request, &result, &mut effects.to_client);
    }

    /// Answers that a tool failed.
    pub(super) fn tool_failed(&self, caller: &Caller, text: &str, effects: &mut Effects) {
        self.done(caller, tool_error(text), effects);
    }

    /// Answers that a command of a tool failed.
    pub(super) fn command_failed(&self, caller: &Caller, failure: &Failure, effects: &mut Effects) {
        let text = match failure.code {
            ErrorCode::NoModel | ErrorCode::NoCredentials => {
                format!("{} {HOW_TO_GET_A_MODEL}", failure.error)
            }
            _ => with_hint(failure),
        };
        self.tool_failed(caller, &text, effects);
    }
}

/// Answers with an error of the protocol.
pub(super) fn refuse(caller: &Caller, error: &RpcError, effects: &mut Effects) {
    write_error(Some(&caller.request), error, &mut effects.to_client);
}

/// Tells the caller how far the work is, where it wants to hear of it.
pub(super) fn tell_progress(work: &mut Work, effects: &mut Effects) {
    let Some(token) = work.caller.as_ref().and_then(|caller| caller.progress_token.as_ref()) else { return };
    work.progress += 1;
    let params = json!({"progressToken": token, "progress": work.progress, "message": work.activity});
    write_notification("notifications/progress", &params, &mut effects.to_client);
}

/// Reads the data of a response.
///
/// # Errors
/// The failure of the command, or that its answer cannot be read.
pub(super) fn data<T: serde::de::DeserializeOwned>(answer: Answer<'_>) -> Result<T, Failure> {
    serde_json::from_str(answer?.map_or("null", RawValue::get)).map_err(|error| {
        Failure::new(ErrorCode::Internal, format!("agentd's answer cannot be read: {error}"))
    })
}
