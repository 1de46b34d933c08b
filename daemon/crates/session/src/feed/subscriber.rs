//! The reading end of a feed.

use super::Feed;
use crate::event_log::{FeedItem, SubscriberId, Taken};

/// How much a subscriber takes at once: enough to make a write worth its system call, little enough to stay in cache.
const BATCH_BYTES: usize = 64 << 10;

/// The reading end of one subscriber. Dropping it detaches.
pub struct Subscriber {
    id: SubscriberId,
    feed: Feed,
}

impl Subscriber {
    pub(super) fn new(id: SubscriberId, feed: Feed) -> Self {
        Self { id, feed }
    }

    /// The name under which the session answers this subscriber.
    #[must_use]
    pub fn id(&self) -> SubscriberId {
        self.id
    }

    /// Takes answers only from here on; events pass by, also those that wait already.
    pub fn mute(&mut self) {
        let relieves = self.feed.lock().mute(self.id);
        self.relieve(relieves);
    }

    /// Waits for items and appends a batch of them to `out`; false when the feed is closed and everything was taken. The
    /// lines are shared with all other subscribers.
    ///
    /// Cancel safety: nothing is taken unless the call returns.
    pub async fn next_items(&self, out: &mut Vec<FeedItem>) -> bool {
        loop {
            // Made before the look into the log, so that nothing slips in between.
            let news = self.feed.0.news.notified();
            let look = self.look(out);
            if look.took || look.is_closed {
                return look.took;
            }
            news.await;
        }
    }

    /// Appends a batch of what is there already to `out`, and does not wait; false when nothing is.
    pub fn ready_items(&self, out: &mut Vec<FeedItem>) -> bool {
        self.look(out).took
    }

    fn look(&self, out: &mut Vec<FeedItem>) -> Look {
        let mut log = self.feed.lock();
        let Taken { any, relieves } = log.take(self.id, BATCH_BYTES, out);
        let look = Look { took: any, is_closed: log.is_closed() };
        drop(log);
        self.relieve(relieves);
        look
    }

    fn relieve(&self, relieves: bool) {
        if relieves {
            self.feed.0.relief.notify_waiters();
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let relieves = self.feed.lock().detach(self.id);
        self.relieve(relieves);
    }
}

/// What a look into the log found.
struct Look {
    took: bool,
    is_closed: bool,
}
