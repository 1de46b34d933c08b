//! The reading end of a feed.

use agentd_protocol::lines::write_line;

use super::Feed;
use crate::event_log::{Item, ReaderId, Taken};

/// How much a reader takes at once: enough to make a write worth its system call, little enough to stay in cache.
const BATCH_BYTES: usize = 64 << 10;

/// The reading end of one listener. Dropping it detaches.
pub struct Reader {
    id: ReaderId,
    feed: Feed,
}

impl Reader {
    pub(super) fn new(id: ReaderId, feed: Feed) -> Self {
        Self { id, feed }
    }

    /// The name under which the session answers this listener.
    #[must_use]
    pub fn id(&self) -> ReaderId {
        self.id
    }

    /// Takes answers only from here on; events pass by, also those that wait already.
    pub fn mute(&mut self) {
        let relieves = self.feed.lock().mute(self.id);
        self.relieve(relieves);
    }

    /// Waits for items and appends a batch of them to `out`; false when the feed is closed and everything was taken. The
    /// lines are shared with all other listeners.
    ///
    /// Cancel safety: nothing is taken unless the call returns.
    pub async fn next_items(&self, out: &mut Vec<Item>) -> bool {
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

    /// Appends a batch of the items that wait right now to `out`; false when nothing did.
    pub fn take_items(&self, out: &mut Vec<Item>) -> bool {
        self.look(out).took
    }

    /// Waits for lines and appends a batch of them to `out`, each ended by LF, separators escaped; false when nothing more
    /// will come and everything was taken: the feed is closed, or this listener was cut off.
    ///
    /// Cancel safety: nothing is taken unless the call returns.
    pub async fn next(&self, out: &mut Vec<u8>) -> bool {
        loop {
            // As above.
            let news = self.feed.0.news.notified();
            let mut items = Vec::new();
            let look = self.look(&mut items);
            if write_items(&items, out) {
                return true;
            }
            // The news of being cut off is no line, but there may be answers behind it.
            if !look.took {
                if look.is_closed || look.is_cut_off {
                    return false;
                }
                news.await;
            }
        }
    }

    /// Appends a batch of the lines that wait right now to `out`; false when none did.
    pub fn take(&self, out: &mut Vec<u8>) -> bool {
        let mut items = Vec::new();
        self.take_items(&mut items) && write_items(&items, out)
    }

    fn look(&self, out: &mut Vec<Item>) -> Look {
        let mut log = self.feed.lock();
        let Taken { any, relieves } = log.take(self.id, BATCH_BYTES, out);
        let look = Look { took: any, is_closed: log.is_closed(), is_cut_off: log.is_cut_off(self.id) };
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

impl Drop for Reader {
    fn drop(&mut self) {
        let relieves = self.feed.lock().detach(self.id);
        self.relieve(relieves);
    }
}

/// What a look into the log found.
struct Look {
    took: bool,
    is_closed: bool,
    is_cut_off: bool,
}

/// Appends the lines among the items. Done outside of the lock: a large answer must not hold up the session.
fn write_items(items: &[Item], out: &mut Vec<u8>) -> bool {
    out.reserve(items.iter().map(|item| item.line_len() + 1).sum());
    let had = out.len();
    for item in items {
        match item {
            Item::Event { line, .. } | Item::Reply { line } => write_line(line, out),
            Item::Lagged { .. } => {}
        }
    }
    out.len() > had
}
