//! How a subagent ends: with what it handed in, with its last words, or without a result. Pure.

use agentd_protocol::{
    error::{ErrorCode, Failure},
    subagent::{SchemaMode, StructuredStatus},
};
use serde_json::Value;

use crate::subagent_place::{ChildState, End};

/// How often one that stops without handing in its result is reminded.
pub(super) const REMINDERS: u32 = 3;

/// How a subagent ended.
pub(super) enum Outcome {
    /// With a result.
    Completed { output: String, data: Option<Value>, warning: Option<String> },
    /// It gave up by itself.
    GaveUp(String),
    /// It was stopped.
    Aborted(String),
    /// It failed.
    Failed(String),
}

/// The outcome, if something was handed in.
pub(super) fn handed_in(state: &ChildState) -> Option<Outcome> {
    let handed_in = &state.handed_in;
    Some(match handed_in.end()? {
        End::Data(data) => {
            let structured = handed_in.structured(Some(&data));
            let misfit = structured.filter(|it| it.status == StructuredStatus::Invalid);
            if let Some(misfit) = &misfit
                && misfit.mode == SchemaMode::Strict
            {
                let why = misfit.error.clone().unwrap_or_default();
                return Some(Outcome::Failed(format!("Its result does not fit the schema: {why}")));
            }
            let warning = misfit.map(|_| "The result does not fit its schema.".to_owned());
            Outcome::Completed { output: shown(&data), data: Some(data), warning }
        }
        End::LastAnswer => {
            let output = state.last_answer().text;
            Outcome::Completed { output, data: None, warning: None }
        }
        End::GaveUp(reason) => Outcome::GaveUp(reason),
        End::Stopped(reason) => Outcome::Failed(reason),
    })
}

/// The outcome of one that never handed in its result.
pub(super) fn without_yield(state: &ChildState, text: String) -> Outcome {
    if let Some(data) = state.handed_in.fitting(&text) {
        return Outcome::Completed { output: shown(&data), data: Some(data), warning: None };
    }
    let warning =
        format!("SYSTEM WARNING: Subagent exited without calling yield tool after {REMINDERS} reminders.");
    if text.trim().is_empty() {
        return Outcome::Failed(warning);
    }
    Outcome::Completed { output: text, data: None, warning: Some(warning) }
}

/// The outcome of one whose session took no message.
pub(super) fn refused(failure: Failure) -> Outcome {
    match failure.code {
        ErrorCode::Aborted | ErrorCode::ShuttingDown | ErrorCode::NoSession => {
            Outcome::Aborted("its session has ended".to_owned())
        }
        _ => Outcome::Failed(failure.error),
    }
}

/// A result as text.
fn shown(data: &Value) -> String {
    match data {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}
