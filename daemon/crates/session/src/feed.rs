//! The event log of a session, shared between the actor that writes it and the connections that read it.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use agentd_protocol::lines::write_line;
use bytes::Bytes;
use tokio::sync::Notify;

use crate::event_log::{EventLog, Item, ReaderId};

/// How many bytes may wait for a slow listener before the session stops producing: 1 MiB.
pub const DEFAULT_FEED_BYTES: usize = 1 << 20;

/// How much a reader takes at once: enough to make a write worth its system call, little enough to stay in cache.
const BATCH_BYTES: usize = 64 << 10;

/// The writing end: what a session says.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    log: Mutex<EventLog>,
    /// Fires when something was added or the feed closed.
    news: Notify,
    /// Fires when something was taken.
    taken: Notify,
    closed: AtomicBool,
}

impl Feed {
    /// A feed that has room until `capacity` bytes wait for the slowest listener.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(Shared {
            log: Mutex::new(EventLog::new(capacity)),
            news: Notify::new(),
            taken: Notify::new(),
            closed: AtomicBool::new(false),
        }))
    }

    /// Publishes finished event lines, in order, to every listener.
    pub fn publish(&self, lines: impl IntoIterator<Item = Bytes>) {
        let mut log = self.lock();
        for line in lines {
            log.publish(line);
        }
        drop(log);
        self.0.news.notify_waiters();
    }

    /// Answers one listener, after everything that was published so far.
    pub fn reply(&self, reader: ReaderId, line: Bytes) {
        self.lock().reply(reader, line);
        self.0.news.notify_waiters();
    }

    /// Whether the slowest listener leaves room for more.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    /// Waits until there is room. Cancel safe.
    pub async fn room(&self) {
        loop {
            let taken = self.0.taken.notified();
            if self.has_room() {
                return;
            }
            taken.await;
        }
    }

    /// Adds a listener.
    #[must_use]
    pub fn attach(&self) -> Reader {
        Reader { id: self.lock().attach(), feed: self.clone(), muted: false }
    }

    /// Says that nothing more will come; listeners take what is left and end.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// Closes the feed when it is dropped: also when a panic ends the session.
    pub(crate) fn close_at_the_end(&self) -> impl Drop + Send + use<> {
        struct Closer(Feed);
        impl Drop for Closer {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        Closer(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, EventLog> {
        // The log's methods leave it whole at every point where they could panic.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reading end of one listener. Dropping it detaches.
pub struct Reader {
    id: ReaderId,
    feed: Feed,
    muted: bool,
}

impl Reader {
    /// The name under which the session answers this listener.
    #[must_use]
    pub fn id(&self) -> ReaderId {
        self.id
    }

    /// Takes answers only from here on; events pass by.
    pub fn mute(&mut self) {
        self.muted = true;
    }

    /// Waits for lines and appends them to `out`, each ended by LF, separators escaped; false when the feed is closed
    /// and everything was taken.
    ///
    /// Cancel safety: nothing is taken unless the call returns.
    pub async fn next(&self, out: &mut Vec<u8>) -> bool {
        loop {
            let shared = Arc::clone(&self.feed.0);
            // Made before the look into the log, so that nothing slips in between.
            let news = shared.news.notified();
            if self.take(out) {
                return true;
            }
            if self.feed.0.closed.load(Ordering::Acquire) {
                // What was published before the closing is visible by now.
                return self.take(out);
            }
            news.await;
        }
    }

    /// Appends what waits right now to `out`; false when nothing did.
    pub fn take(&self, out: &mut Vec<u8>) -> bool {
        let mut lines: Vec<Bytes> = Vec::new();
        let (mut size, mut passed) = (0, false);
        self.feed.lock().read(self.id, |item| {
            passed = true;
            match item {
                Item::Event { .. } if self.muted => {}
                Item::Event { line, .. } | Item::Reply { line, .. } => {
                    lines.push(line.clone());
                    size += line.len();
                }
            }
            size < BATCH_BYTES
        });
        if passed {
            self.feed.0.taken.notify_waiters();
        }
        if lines.is_empty() {
            return false;
        }
        // Copied outside of the lock: a large answer must not hold up the session.
        out.reserve(size + lines.len());
        for line in &lines {
            write_line(line, out);
        }
        true
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.lock().detach(self.id);
        self.feed.0.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn line(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    async fn next(reader: &Reader) -> Option<String> {
        let mut out = Vec::new();
        let more =
            timeout(Duration::from_secs(30), reader.next(&mut out)).await.expect("a reader that is woken");
        more.then(|| String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken_and_ends_with_the_feed() {
        let feed = Feed::new(100);
        let reader = feed.attach();
        let writing = feed.clone();
        let writer = tokio::spawn(async move {
            writing.publish([line("\"a\u{2028}\""), line("b")]);
            writing.close();
        });
        let mut taken = String::new();
        while let Some(lines) = next(&reader).await {
            taken.push_str(&lines);
        }
        assert_eq!(taken, "\"a\\u2028\"\nb\n", "everything before the end, separators escaped");
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn a_full_feed_has_room_again_once_its_reader_took_something_or_left() {
        let feed = Feed::new(2);
        let reader = feed.attach();
        feed.publish([line("abc")]);
        assert!(!feed.has_room());
        let waiting = tokio::spawn({
            let feed = feed.clone();
            async move { feed.room().await }
        });
        assert_eq!(next(&reader).await.as_deref(), Some("abc\n"));
        timeout(Duration::from_secs(30), waiting).await.expect("room").unwrap();

        feed.publish([line("abc")]);
        drop(reader);
        timeout(Duration::from_secs(30), feed.room()).await.expect("a reader that left holds nothing back");
    }

    #[tokio::test]
    async fn a_muted_reader_takes_answers_only() {
        let feed = Feed::new(100);
        let mut reader = feed.attach();
        reader.mute();
        feed.publish([line("event")]);
        feed.reply(reader.id(), line("answer"));
        feed.publish([line("event")]);
        feed.close();
        assert_eq!(next(&reader).await.as_deref(), Some("answer\n"));
        assert_eq!(next(&reader).await, None);
    }

    #[tokio::test]
    async fn a_session_that_breaks_down_still_ends_its_feed() {
        let feed = Feed::new(10);
        let (reader, end) = (feed.attach(), feed.close_at_the_end());
        let broken = tokio::spawn(async move {
            let _end = end;
            panic!("a bug in a session");
        });
        broken.await.unwrap_err();
        assert_eq!(next(&reader).await, None);
    }
}
