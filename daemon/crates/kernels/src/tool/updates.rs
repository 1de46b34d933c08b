//! What clients see of a cell while it runs.

use std::time::Duration;

use agentd_agent::ToolProgress;
use tokio::time::Instant;

use crate::{arguments::EvalCall, report::CellOutput};

/// The least time between two partial results.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Sends partial results, at most one per interval.
pub(super) struct Updates<'a> {
    progress: &'a ToolProgress,
    /// When the next may be sent.
    pub(super) next: Instant,
    /// Whether one is to be sent then.
    pub(super) is_due: bool,
}

impl<'a> Updates<'a> {
    pub(super) fn new(progress: &'a ToolProgress) -> Self {
        Self { progress, next: Instant::now(), is_due: false }
    }

    pub(super) fn changed(&mut self, output: &CellOutput, call: &EvalCall) {
        self.is_due = true;
        // While output flows, the timer's branch does not run.
        if Instant::now() >= self.next {
            self.send(output, call);
        }
    }

    pub(super) fn send(&mut self, output: &CellOutput, call: &EvalCall) {
        self.progress.report(output.update(call));
        self.is_due = false;
        self.next = Instant::now() + UPDATE_INTERVAL;
    }
}
