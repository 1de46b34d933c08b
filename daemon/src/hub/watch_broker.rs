//! Tells watchers which sessions were opened, changed and closed.
//!
//! A watcher hears which sessions changed, not how: it looks at them when it reads. The changes that wait for a slow watcher are
//! therefore bounded by the number of sessions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Notify;

/// Distributes the changes of all sessions to the watchers.
#[derive(Debug, Default)]
pub struct WatchBroker {
    watchers: Mutex<Vec<Weak<PendingChanges>>>,
}

/// The change of a session since a watcher last looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange {
    /// It was opened.
    Opened,
    /// Something about it is different.
    Changed,
    /// It was closed.
    Closed,
    /// It was closed and is open again.
    Reopened,
}

/// The changes that one watcher has yet to read.
#[derive(Debug, Default)]
struct PendingChanges {
    queue: Mutex<ChangeQueue>,
    /// Notified when the queue is no longer empty.
    added: Notify,
}

/// At most one change for each session, in the order in which the sessions first changed.
#[derive(Debug, Default)]
struct ChangeQueue {
    /// The change, with its place in the order.
    changes: HashMap<Arc<str>, (u64, SessionChange)>,
    last: u64,
}

/// Hears of all sessions from its subscription on.
#[derive(Debug)]
pub struct SessionWatcher(Arc<PendingChanges>);

impl WatchBroker {
    /// A watcher that hears of every change from here on.
    #[must_use]
    pub fn subscribe(&self) -> SessionWatcher {
        let pending = Arc::<PendingChanges>::default();
        let mut watchers = self.watchers();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(&pending));
        SessionWatcher(pending)
    }

    pub(super) fn opened(&self, id: &Arc<str>) {
        self.publish(id, SessionChange::Opened);
    }

    pub(super) fn changed(&self, id: &Arc<str>) {
        self.publish(id, SessionChange::Changed);
    }

    pub(super) fn closed(&self, id: &Arc<str>) {
        self.publish(id, SessionChange::Closed);
    }

    fn publish(&self, id: &Arc<str>, change: SessionChange) {
        for watcher in self.watchers().iter().filter_map(Weak::upgrade) {
            watcher.queue.lock().unwrap_or_else(PoisonError::into_inner).add(id, change);
            watcher.added.notify_one();
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<PendingChanges>>> {
        // Adding and dropping leave the list whole.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeQueue {
    fn add(&mut self, id: &Arc<str>, change: SessionChange) {
        let before = self.changes.get(id).map(|(_, before)| *before);
        let merged = match (before, change) {
            (None, change) => change,
            // The watcher has heard neither: it need not hear of a session that came and went.
            (Some(SessionChange::Opened), SessionChange::Closed) => {
                self.changes.remove(id);
                return;
            }
            (Some(SessionChange::Closed), SessionChange::Opened) => SessionChange::Reopened,
            (Some(SessionChange::Reopened), SessionChange::Closed) => SessionChange::Closed,
            (Some(before @ (SessionChange::Opened | SessionChange::Closed | SessionChange::Reopened)), _) => {
                before
            }
            (Some(SessionChange::Changed), change) => change,
        };
        self.last += 1;
        let number = self.changes.get(id).map_or(self.last, |(number, _)| *number);
        self.changes.insert(Arc::clone(id), (number, merged));
    }

    fn take(&mut self) -> Vec<(Arc<str>, SessionChange)> {
        let mut taken: Vec<_> = std::mem::take(&mut self.changes).into_iter().collect();
        taken.sort_unstable_by_key(|(_, (number, _))| *number);
        taken.into_iter().map(|(id, (_, change))| (id, change)).collect()
    }
}

impl SessionWatcher {
    /// Waits for changes, and takes all there are. Cancel safe.
    pub async fn next(&self) -> Vec<(Arc<str>, SessionChange)> {
        loop {
            let taken = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
            if !taken.is_empty() {
                return taken;
            }
            self.0.added.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> Arc<str> {
        text.into()
    }

    async fn next(watcher: &SessionWatcher) -> Vec<(String, SessionChange)> {
        watcher.next().await.into_iter().map(|(id, change)| (id.to_string(), change)).collect()
    }

    #[tokio::test]
    async fn changes_are_merged_and_read_in_the_order_of_the_first_of_each_session() {
        let broker = WatchBroker::default();
        broker.opened(&id("before"));
        let watcher = broker.subscribe();
        broker.changed(&id("b"));
        broker.opened(&id("a"));
        broker.changed(&id("a"));
        broker.closed(&id("b"));
        let expected = vec![("b".to_owned(), SessionChange::Closed), ("a".to_owned(), SessionChange::Opened)];
        assert_eq!(next(&watcher).await, expected);
        broker.changed(&id("a"));
        assert_eq!(next(&watcher).await, [("a".to_owned(), SessionChange::Changed)]);
    }

    #[tokio::test]
    async fn a_waiting_watcher_is_woken_and_one_that_left_is_dropped() {
        let broker = WatchBroker::default();
        let watcher = broker.subscribe();
        let waiting = tokio::spawn(async move { next(&watcher).await });
        tokio::task::yield_now().await;
        broker.opened(&id("a"));
        assert_eq!(waiting.await.unwrap(), [("a".to_owned(), SessionChange::Opened)]);
        let _other = broker.subscribe();
        assert_eq!(broker.watchers().len(), 1);
    }

    proptest! {
        /// Whatever is merged, a watcher that applies the changes knows at each pause which sessions are open.
        #[test]
        fn merged_changes_add_up(steps in prop::collection::vec((0..3usize, any::<bool>(), any::<bool>()), 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let broker = WatchBroker::default();
            let watcher = broker.subscribe();
            let (mut open, mut told) = ([false; 3], [false; 3]);
            for (session, changes, looks) in steps {
                let name = id(&session.to_string());
                if changes {
                    if open[session] { broker.changed(&name) }
                } else if open[session] {
                    open[session] = false;
                    broker.closed(&name);
                } else {
                    open[session] = true;
                    broker.opened(&name);
                }
                let any = !watcher.0.queue.lock().unwrap().changes.is_empty();
                if looks && any {
                    for (id, change) in runtime.block_on(watcher.next()) {
                        let told = &mut told[id.parse::<usize>().unwrap()];
                        match change {
                            SessionChange::Opened => { assert!(!*told); *told = true }
                            SessionChange::Changed | SessionChange::Reopened => assert!(*told),
                            SessionChange::Closed => { assert!(*told); *told = false }
                        }
                    }
                    prop_assert_eq!(open, told);
                }
            }
        }
    }
}
