//! Calls of tools by tools, from their begin to their end.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use agentd_protocol::{message::NestedCalls, usage::Usage};
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;

use crate::{
    extensions::SessionExtensions,
    nested::{NestedBook, Record, Scope, lock},
};

/// A call of a tool that has begun.
pub struct NestedTicket {
    /// Its id: that of the call that made it, and a number.
    pub id: String,
    parent: String,
    /// Its place in the record.
    at: Option<usize>,
    begun: Instant,
    record: Arc<Mutex<Record>>,
    book: NestedBook,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl SessionExtensions {
    /// The calls of tools by tools.
    #[must_use]
    pub fn nested(&self) -> &NestedBook {
        &self.0.nested
    }

    /// The call that has made a call, if a tool has.
    pub(crate) fn parent_of(&self, call_id: &str) -> Option<String> {
        self.0.nested.lock().get(call_id)?.parent.clone()
    }
}

impl NestedBook {
    /// A tool that runs as `parent` calls another.
    #[must_use]
    pub fn begin(&self, parent: &str, name: &str, arguments: &Map<String, Value>) -> NestedTicket {
        let mut scopes = self.lock();
        let scope = scopes.entry(parent.to_owned()).or_insert_with(|| Scope {
            record: Arc::default(),
            next: 0,
            is_exclusive: false,
            parent: None,
        });
        scope.next += 1;
        let (id, record) = (format!("{parent}/{}", scope.next), Arc::clone(&scope.record));
        let is_exclusive = scope.is_exclusive;
        let own =
            Scope { record: Arc::clone(&record), next: 0, is_exclusive, parent: Some(parent.to_owned()) };
        scopes.insert(id.clone(), own);
        drop(scopes);
        let at = lock(&record).begin(&id, name, arguments);
        NestedTicket {
            id,
            parent: parent.to_owned(),
            at,
            begun: Instant::now(),
            record,
            book: self.clone(),
            _turn: None,
        }
    }

    /// The calls that a call of the model has made, and the tokens that they used; it makes no more.
    #[must_use]
    pub fn take(&self, call_id: &str) -> Option<(Option<NestedCalls>, Option<Usage>)> {
        let scope = self.lock().remove(call_id)?;
        let record = lock(&scope.record);
        Some((record.snapshot(), record.usage.clone()))
    }

    /// Forgets what calls have made that have no result.
    pub fn clear(&self) {
        self.lock().clear();
    }
}

impl NestedTicket {
    /// Waits until no other such call runs, unless the call that made it has waited for that.
    pub async fn alone(&mut self) {
        let book = self.book.clone();
        let is_held = book.lock().get(&self.id).is_some_and(|scope| scope.is_exclusive);
        if !is_held {
            let turn = book.exclusive().lock_owned().await;
            if let Some(scope) = book.lock().get_mut(&self.id) {
                scope.is_exclusive = true;
            }
            self._turn = Some(turn);
        }
    }

    /// The call that made it.
    #[must_use]
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The call has ended.
    pub fn finish(self, failure: Option<&str>, usage: Option<&Usage>) {
        lock(&self.record).finish(self.at, self.begun, failure, usage);
    }
}

impl Drop for NestedTicket {
    fn drop(&mut self) {
        self.book.lock().remove(&self.id);
    }
}
