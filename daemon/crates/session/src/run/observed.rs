//! What an observer is told of a run as a whole.

use std::sync::Arc;

use agentd_agent::observer::SessionObserver;
use agentd_protocol::error::ErrorCode;

use crate::context::SessionContext;

/// A run that the session's observer is shown, if it has one. Dropped, it is over: a run that panics, too.
pub(super) struct ObservedRun {
    observer: Option<Arc<dyn SessionObserver>>,
    /// Why it did not get past its checks, if it did not.
    pub(super) refused: Option<ErrorCode>,
}

impl ObservedRun {
    /// A run begins, of a prompt with this `traceparent`.
    pub(super) fn begin(context: &SessionContext, traceparent: Option<&str>) -> Self {
        let observer = context.observer.clone();
        if let Some(observer) = &observer {
            observer.run_begins(traceparent);
        }
        Self { observer, refused: None }
    }
}

impl Drop for ObservedRun {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer.run_ends(self.refused);
        }
    }
}
