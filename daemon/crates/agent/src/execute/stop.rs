//! Ending calls before they end by themselves.

use agentd_protocol::message::ToolCall;
use tokio_util::sync::CancellationToken;

use super::{ABORTED, Outcome};
use crate::StoppedCall;

/// What ends the calls of one answer early.
pub(super) struct Stop<'a> {
    /// Ends the run, and the calls with it.
    pub(super) run: &'a CancellationToken,
    /// Ends the calls; a child of the run's.
    pub(super) calls: CancellationToken,
    /// The calls that ran when they were stopped.
    pub(super) stopped: Vec<StoppedCall>,
}

impl Stop<'_> {
    /// Takes note of a call that ended. One that did not survive being stopped says no more than that, unless the whole
    /// run was: then its own words end the transcript.
    pub(super) fn ended(&mut self, call: &ToolCall, outcome: Outcome) -> Outcome {
        if !self.calls.is_cancelled() {
            return outcome;
        }
        self.note(call, false);
        if outcome.failed && !self.run.is_cancelled() {
            return Outcome { duration_ms: outcome.duration_ms, ..Outcome::failure(ABORTED) };
        }
        outcome
    }

    /// Takes note of a call that was stopped and does not end: its result is that it was stopped.
    pub(super) fn survived(&mut self, call: &ToolCall) -> Outcome {
        self.note(call, true);
        Outcome::failure(ABORTED)
    }

    fn note(&mut self, call: &ToolCall, survives: bool) {
        self.stopped.push(StoppedCall { id: call.id.clone(), name: call.name.clone(), survives });
    }
}
