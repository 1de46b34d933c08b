//! Who watches all sessions, and what each has yet to hear.
//!
//! A watcher is told which sessions changed, not how: it looks at them when it gets to it. What waits for one that reads
//! slowly is bounded by the number of sessions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use agentd_session::SessionWatch;
use tokio::sync::Notify;

use super::SessionRegistry;

/// Takes the news of all sessions.
pub struct WatchBroker {
    registry: Weak<SessionRegistry>,
    watchers: Mutex<Vec<Weak<PendingChanges>>>,
}

/// What happened to a session, as far as a watcher has yet to hear of it.
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

/// What one watcher has yet to hear, by session, in the order in which the sessions had news.
#[derive(Debug, Default)]
struct PendingChanges {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Each with a number that grows.
    of: HashMap<Arc<str>, (u64, SessionChange)>,
    last: u64,
}

/// Hears of all sessions from when it was made.
#[derive(Debug)]
pub struct SessionWatcher(Arc<PendingChanges>);

impl WatchBroker {
    pub(super) fn new(registry: Weak<SessionRegistry>) -> Self {
        Self { registry, watchers: Mutex::default() }
    }

    /// A watcher who hears of everything from here on.
    #[must_use]
    pub fn watcher(&self) -> SessionWatcher {
        let pending = Arc::<PendingChanges>::default();
        let mut watchers = self.watchers();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(&pending));
        SessionWatcher(pending)
    }

    pub(super) fn opened(&self, id: &Arc<str>) {
        self.tell(id, SessionChange::Opened);
    }

    pub(super) fn changed_at(&self, id: &Arc<str>) {
        self.tell(id, SessionChange::Changed);
    }

    pub(super) fn closed(&self, id: &Arc<str>) {
        self.tell(id, SessionChange::Closed);
    }

    fn tell(&self, id: &Arc<str>, news: SessionChange) {
        for watcher in self.watchers().iter().filter_map(Weak::upgrade) {
            watcher.waiting.lock().unwrap_or_else(PoisonError::into_inner).add(id, news);
            watcher.news.notify_one();
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<PendingChanges>>> {
        // Adding and dropping leave the list whole.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionWatch for WatchBroker {
    fn changed(&self, id: &str) {
        let Some(registry) = self.registry.upgrade() else { return };
        if let Some(known) = registry.get(id) {
            self.tell(known.id(), SessionChange::Changed);
        }
        // Work has begun or ended: it may have grown.
        registry.evict_for_memory_soon();
    }

    fn idle(&self, id: &str) {
        if let Some(registry) = self.registry.upgrade() {
            registry.unload_soon(id);
        }
    }
}

impl Waiting {
    fn add(&mut self, id: &Arc<str>, news: SessionChange) {
        let before = self.of.get(id).map(|(_, before)| *before);
        let together = match (before, news) {
            (None, news) => news,
            // Of what came and went the watcher need not hear, and what it was told to be closed does not change.
            (Some(SessionChange::Opened), SessionChange::Closed) => {
                self.of.remove(id);
                return;
            }
            (Some(SessionChange::Closed), SessionChange::Opened) => SessionChange::Reopened,
            (Some(SessionChange::Reopened), SessionChange::Closed) => SessionChange::Closed,
            (Some(before @ (SessionChange::Opened | SessionChange::Closed | SessionChange::Reopened)), _) => {
                before
            }
            (Some(SessionChange::Changed), news) => news,
        };
        self.last += 1;
        let number = self.of.get(id).map_or(self.last, |(number, _)| *number);
        self.of.insert(Arc::clone(id), (number, together));
    }

    fn take(&mut self) -> Vec<(Arc<str>, SessionChange)> {
        let mut taken: Vec<_> = std::mem::take(&mut self.of).into_iter().collect();
        taken.sort_unstable_by_key(|(_, (number, _))| *number);
        taken.into_iter().map(|(id, (_, news))| (id, news)).collect()
    }
}

impl SessionWatcher {
    /// Waits for news, and takes all there are. Cancel safe.
    pub async fn next(&self) -> Vec<(Arc<str>, SessionChange)> {
        loop {
            let taken = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            if !taken.is_empty() {
                return taken;
            }
            self.0.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watch_broker() -> WatchBroker {
        WatchBroker::new(Weak::new())
    }

    fn id(text: &str) -> Arc<str> {
        text.into()
    }

    async fn next(watcher: &SessionWatcher) -> Vec<(String, SessionChange)> {
        watcher.next().await.into_iter().map(|(id, news)| (id.to_string(), news)).collect()
    }

    #[tokio::test]
    async fn news_wait_together_in_the_order_in_which_they_began() {
        let board = watch_broker();
        board.opened(&id("before"));
        let watcher = board.watcher();
        board.changed_at(&id("b"));
        board.opened(&id("a"));
        board.changed_at(&id("a"));
        board.closed(&id("b"));
        let expected = vec![("b".to_owned(), SessionChange::Closed), ("a".to_owned(), SessionChange::Opened)];
        assert_eq!(next(&watcher).await, expected);
        board.changed_at(&id("a"));
        assert_eq!(next(&watcher).await, [("a".to_owned(), SessionChange::Changed)]);
    }

    #[tokio::test]
    async fn a_waiting_watcher_is_woken_and_one_that_left_is_forgotten() {
        let board = watch_broker();
        let watcher = board.watcher();
        let waiting = tokio::spawn(async move { next(&watcher).await });
        tokio::task::yield_now().await;
        board.opened(&id("a"));
        assert_eq!(waiting.await.unwrap(), [("a".to_owned(), SessionChange::Opened)]);
        let _other = board.watcher();
        assert_eq!(board.watchers().len(), 1);
    }

    proptest! {
        /// Whatever is left out, a watcher that follows what it is told knows at each pause which sessions are open.
        #[test]
        fn what_is_told_adds_up(steps in prop::collection::vec((0..3usize, any::<bool>(), any::<bool>()), 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let board = watch_broker();
            let watcher = board.watcher();
            let (mut open, mut told) = ([false; 3], [false; 3]);
            for (session, changes, looks) in steps {
                let name = id(&session.to_string());
                if changes {
                    if open[session] { board.changed_at(&name) }
                } else if open[session] {
                    open[session] = false;
                    board.closed(&name);
                } else {
                    open[session] = true;
                    board.opened(&name);
                }
                let any = !watcher.0.waiting.lock().unwrap().of.is_empty();
                if looks && any {
                    for (id, news) in runtime.block_on(watcher.next()) {
                        let told = &mut told[id.parse::<usize>().unwrap()];
                        match news {
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
