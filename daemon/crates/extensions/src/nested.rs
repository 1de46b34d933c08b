//! Calls that tools of extensions make while they run: their ids, and the bounded record of them that the result of the outer call has.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use agentd_protocol::{
    message::{NestedCall, NestedCalls},
    text_bounds,
    usage::Usage,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex as FairMutex;

/// The most calls in a record.
const MAX_CALLS: usize = 256;

/// The most bytes of a call's arguments in a record.
const MAX_ARGUMENTS: usize = 8 << 10;

/// The most bytes of the arguments of all calls in a record.
const MAX_ALL_ARGUMENTS: usize = 32 << 10;

/// The most bytes of a failure's text in a record.
const MAX_ERROR: usize = 500;

/// The calls of a session's tools by tools. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct NestedBook(Arc<Inner>);

#[derive(Default)]
struct Inner {
    scopes: Mutex<HashMap<String, Scope>>,
    exclusive: Arc<FairMutex<()>>,
}

/// What one call has made.
pub(crate) struct Scope {
    pub(crate) record: Arc<Mutex<Record>>,
    pub(crate) next: u64,
    /// Whether the call holds the queue, so that its own calls need not wait for it.
    pub(crate) is_exclusive: bool,
    /// The call that made it; `None` for one of the model.
    pub(crate) parent: Option<String>,
}

/// The record of the calls of one call of the model.
#[derive(Default)]
pub(crate) struct Record {
    calls: Vec<NestedCall>,
    is_cut: bool,
    argument_bytes: usize,
    pub(crate) usage: Option<Usage>,
}

impl NestedBook {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, Scope>> {
        // No method panics halfway.
        self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held by calls that must not run beside others.
    pub(crate) fn exclusive(&self) -> Arc<FairMutex<()>> {
        Arc::clone(&self.0.exclusive)
    }
}

impl Record {
    pub(crate) fn begin(&mut self, id: &str, name: &str, arguments: &Map<String, Value>) -> Option<usize> {
        if self.calls.len() >= MAX_CALLS {
            self.is_cut = true;
            return None;
        }
        let bytes = serde_json::to_string(arguments).map_or(0, |text| text.len());
        let fits = bytes <= MAX_ARGUMENTS && self.argument_bytes + bytes <= MAX_ALL_ARGUMENTS;
        self.is_cut |= !fits;
        if fits {
            self.argument_bytes += bytes;
        }
        self.calls.push(NestedCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: fits.then(|| arguments.clone()),
            arguments_bytes: (!fits).then(|| u64::try_from(bytes).unwrap_or(u64::MAX)),
            status: "unfinished".to_owned(),
            duration_ms: None,
            error: None,
        });
        Some(self.calls.len() - 1)
    }

    pub(crate) fn finish(
        &mut self,
        at: Option<usize>,
        begun: Instant,
        failure: Option<&str>,
        usage: Option<&Usage>,
    ) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().add(usage);
        }
        let Some(call) = at.and_then(|at| self.calls.get_mut(at)) else { return };
        call.status = if failure.is_some() { "error" } else { "ok" }.to_owned();
        call.duration_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        call.error =
            failure.filter(|text| !text.is_empty()).map(|text| text_bounds::head(text, MAX_ERROR).to_owned());
    }

    pub(crate) fn snapshot(&self) -> Option<NestedCalls> {
        if self.calls.is_empty() && !self.is_cut {
            return None;
        }
        let is_over = self.calls.iter().all(|call| call.status != "unfinished");
        Some(NestedCalls { calls: self.calls.clone(), complete: !self.is_cut && is_over })
    }
}

pub(crate) fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    // No method panics halfway.
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(bytes: usize) -> Map<String, Value> {
        Map::from_iter([("text".to_owned(), json!("x".repeat(bytes)))])
    }

    #[test]
    fn a_record_is_bounded() {
        let mut record = Record::default();
        assert!(record.snapshot().is_none());
        for number in 0..5 {
            let at = record.begin(&format!("c/{number}"), "t", &arguments(8000));
            record.finish(at, Instant::now(), None, None);
        }
        let shown = record.snapshot().unwrap();
        assert_eq!(shown.calls.iter().filter(|call| call.arguments.is_some()).count(), 4);
        assert!(shown.calls[4].arguments_bytes.is_some() && !shown.complete);

        let mut record = Record::default();
        let at = record.begin("c/1", "t", &arguments(1));
        assert!(!record.snapshot().unwrap().complete, "it has not ended");
        record.finish(at, Instant::now(), Some(&"e".repeat(600)), None);
        let shown = record.snapshot().unwrap();
        assert_eq!((shown.calls[0].status.as_str(), shown.complete), ("error", true));
        assert_eq!(shown.calls[0].error.as_ref().map(String::len), Some(500));
        assert!((0..255).all(|number| record.begin(&number.to_string(), "t", &arguments(1)).is_some()));
        assert_eq!(record.begin("last", "t", &arguments(1)), None);
        assert!(!record.snapshot().unwrap().complete);
    }
}
