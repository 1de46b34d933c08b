//! Tool calls that were stopped and do not end: they have their results, and are told as what survives.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_protocol::{
    command::{Work, WorkKind},
    message::ToolCall,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Shared by the run that leaves them behind and the actor that tells of them.
#[derive(Clone, Default)]
pub(crate) struct DetachedCalls(Arc<Mutex<Vec<(Work, CancellationToken)>>>);

impl DetachedCalls {
    /// A call is left to itself until `over` fires.
    pub(crate) fn add(&self, call: &ToolCall, over: CancellationToken) {
        let id = Some(Value::String(call.id.clone()));
        let work = Work { kind: WorkKind::Tool, id, name: Some(call.name.clone()) };
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|(_, over)| !over.is_cancelled());
        left.push((work, over));
    }

    /// Those that have not ended.
    pub(crate) fn works(&self) -> Vec<Work> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|(_, over)| !over.is_cancelled());
        left.iter().map(|(work, _)| work.clone()).collect()
    }
}
