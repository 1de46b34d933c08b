//! The event log of a session, shared by the actor that writes it and the subscribers that read it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{
    events::{Audience, FeedItem, SubscriberId},
    log::{EventLog, Taken},
    long_reply::LongReply,
    message_ids::MessageId,
};

/// The limits of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// Bytes that may wait for a slow subscriber before the session waits or cuts it off: 1 MiB.
    pub outbox_bytes: usize,
    /// Bytes of events that stay for clients that come back: 256 KiB.
    pub replay_bytes: usize,
    /// Time that too many bytes may wait for one subscriber while there are others: a second.
    pub grace: Duration,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self { outbox_bytes: 1 << 20, replay_bytes: 256 << 10, grace: Duration::from_secs(1) }
    }
}

/// The writing end of a session's event log. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<FeedInner>);

struct FeedInner {
    log: Mutex<EventLog>,
    /// Time that too many bytes may wait for one subscriber while there are others.
    grace: Duration,
    /// Fires when there is something to take: lines, a cut, the end.
    news: Notify,
    /// Fires when tasks that wait for room should look again.
    room_freed: Notify,
}

impl Feed {
    /// A feed that counts its events from 1, has room until [`FeedLimits::outbox_bytes`] wait for the slowest subscriber, and
    /// keeps the newest [`FeedLimits::replay_bytes`] of its events for [`Self::attach_since`].
    #[must_use]
    pub fn new(limits: FeedLimits) -> Self {
        Self::starting_after(0, limits)
    }

    /// The same, for events that follow on event `last_seq`.
    pub(crate) fn starting_after(last_seq: u64, limits: FeedLimits) -> Self {
        let FeedLimits { outbox_bytes, replay_bytes, grace } = limits;
        let log = Mutex::new(EventLog::starting_after(last_seq, outbox_bytes, replay_bytes));
        Self(Arc::new(FeedInner { log, grace, news: Notify::new(), room_freed: Notify::new() }))
    }

    /// Drops the events that are only kept for clients that come back; what subscribers have yet to take stays.
    pub fn forget(&self) {
        self.lock().forget();
    }

    /// The number of the last event that was published.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.lock().last_seq()
    }

    /// The message that streams, after all events so far.
    pub(crate) fn open_message(&self) -> Option<MessageId> {
        self.lock().open_message()
    }

    /// Publishes finished event lines, in order, to every subscriber.
    pub fn publish(&self, lines: impl IntoIterator<Item = Bytes>) {
        let mut log = self.lock();
        for line in lines {
            log.publish(line);
        }
        drop(log);
        self.0.news.notify_waiters();
    }

    /// Publishes a finished event line that is not for every client.
    pub fn publish_for(&self, audience: Audience, line: Bytes) {
        self.lock().publish_for(audience, line);
        self.0.news.notify_waiters();
    }

    /// Answers one subscriber, after everything that was published so far.
    pub fn reply(&self, subscriber: SubscriberId, line: Bytes) {
        self.lock().reply(subscriber, line);
        self.0.news.notify_waiters();
    }

    /// [`Self::reply`] with a long answer.
    pub(crate) fn reply_long(&self, subscriber: SubscriberId, reply: LongReply) {
        self.lock().reply_long(subscriber, reply);
        self.0.news.notify_waiters();
    }

    /// Sends one subscriber a line that is no answer, after everything that was published so far. It is never dropped, as answers
    /// are not.
    pub(crate) fn address(&self, subscriber: SubscriberId, line: Bytes) {
        self.lock().address(subscriber, line);
        self.0.news.notify_waiters();
    }

    /// Whether the slowest subscriber leaves room for more.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    /// Whether the last events of stopped work may be published though there is no room.
    #[must_use]
    pub(crate) fn has_room_to_stop(&self) -> bool {
        self.lock().has_room_to_stop()
    }

    /// Waits until there is room. A subscriber that takes too little is waited for as long as it is alone; beside others it
    /// is cut off a second after it got too slow: see [`FeedItem::Lagged`](crate::FeedItem::Lagged).
    ///
    /// Cancel safe: the second is not counted anew.
    pub async fn room(&self) {
        loop {
            // Created before the look into the log, so that no wake-up is missed.
            let room_freed = self.0.room_freed.notified();
            let room = self.lock().make_room(Instant::now().into_std(), self.0.grace);
            if room.has_cut {
                self.0.news.notify_waiters();
            }
            match (room.is_there, room.next_cut) {
                (true, _) => return,
                (false, None) => room_freed.await,
                (false, Some(at)) => {
                    // Either way the log is looked at again.
                    let _ = timeout_at(at.into(), room_freed).await;
                }
            }
        }
    }

    /// Waits until a subscriber has taken enough of its answers that it may ask for more, however slow other
    /// subscribers are. Wait for this before each command of a client: answers are never dropped, and the answers of a
    /// subscriber that was cut off hold up nothing else. Cancel safe.
    pub async fn reply_room(&self, subscriber: SubscriberId) {
        loop {
            let room_freed = self.0.room_freed.notified();
            if self.lock().has_reply_room(subscriber) {
                return;
            }
            room_freed.await;
        }
    }

    /// Adds a subscriber, who takes everything from here on.
    #[must_use]
    pub fn attach(&self) -> Subscriber {
        let id = next_id();
        self.lock().attach(id);
        self.subscriber(id)
    }

    /// The same for one that will not come back to go on from an event: nothing is kept for it once it has left.
    #[must_use]
    pub fn attach_for_now(&self) -> Subscriber {
        let id = next_id();
        self.lock().attach_for_now(id);
        self.subscriber(id)
    }

    /// Adds a subscriber, who takes everything after the event `seq`. `None` when some of that is no longer there, or when
    /// there has never been such an event.
    #[must_use]
    pub fn attach_since(&self, seq: u64) -> Option<Subscriber> {
        let id = next_id();
        self.lock().attach_since(id, seq).then(|| self.subscriber(id))
    }

    /// Adds a subscriber that takes answers alone. One that only looks (`is_onlooker`) holds up nothing: the session does not wait
    /// for it, and no other subscriber is cut off for it.
    #[must_use]
    pub fn attach_aside(&self, is_onlooker: bool) -> Subscriber {
        let id = next_id();
        self.lock().attach_aside(id, is_onlooker);
        self.subscriber(id)
    }

    /// Invalidates all earlier events: the session is not what they said. Clients that count events are told that they
    /// lag, so that they join anew; an earlier `since` is answered by a snapshot.
    pub(crate) fn start_over(&self) {
        let mut log = self.lock();
        // Its session and its number are added for each client, as to every event.
        let line = format!(r#"{{"type":"lagged","fromSeq":{}}}"#, log.last_seq() + 1);
        log.start_over(Bytes::from(line));
        drop(log);
        self.0.news.notify_waiters();
    }

    /// Whether a subscriber has taken enough of its answers that it may ask for more.
    pub(crate) fn has_reply_room(&self, subscriber: SubscriberId) -> bool {
        self.lock().has_reply_room(subscriber)
    }

    /// Whether so much waits for a subscriber that the session waits for it.
    pub(crate) fn is_full(&self, subscriber: SubscriberId) -> bool {
        self.lock().is_full(subscriber)
    }

    /// Whether a subscriber is there.
    pub(crate) fn has(&self, subscriber: SubscriberId) -> bool {
        self.lock().has(subscriber)
    }

    /// Announces, until the guard is dropped, a client that waits for the session and is no subscriber yet. A
    /// subscriber that does not keep up is then cut off even if it is alone: otherwise a client that joins would wait
    /// for a subscriber that has stopped.
    #[must_use]
    pub fn announce(&self) -> impl Drop + Send + use<> {
        struct Announced(Feed);
        impl Drop for Announced {
            fn drop(&mut self) {
                self.0.lock().unannounce();
            }
        }
        self.lock().announce();
        self.0.room_freed.notify_waiters();
        Announced(self.clone())
    }

    /// Says that nothing more will come; subscribers take what is left and end.
    pub fn close(&self) {
        self.lock().close();
        self.0.news.notify_waiters();
        self.0.room_freed.notify_waiters();
    }

    /// Closes the feed when what it gives is dropped: also when a panic ends the session.
    pub(crate) fn close_at_the_end(&self) -> Closer {
        Closer(Some(self.clone()))
    }

    fn subscriber(&self, id: SubscriberId) -> Subscriber {
        // A subscriber that is waited for may be alone no more.
        self.0.room_freed.notify_waiters();
        Subscriber::new(id, self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, EventLog> {
        // The log's methods leave it whole at every point where they could panic.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a feed when it is dropped.
pub(crate) struct Closer(Option<Feed>);

impl Closer {
    /// Leaves the feed open after all.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        if let Some(feed) = &self.0 {
            feed.close();
        }
    }
}

/// An id that is unique in the process, so that an answer never reaches a subscriber that did not ask.
fn next_id() -> SubscriberId {
    static LAST: AtomicU64 = AtomicU64::new(0);
    SubscriberId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Bytes that a subscriber takes at once: enough to make a write worth its system call, few enough to stay in cache.
const BATCH_BYTES: usize = 64 << 10;

/// The reading end of one subscriber. Dropping it detaches.
pub struct Subscriber {
    id: SubscriberId,
    feed: Feed,
}

impl Subscriber {
    fn new(id: SubscriberId, feed: Feed) -> Self {
        Self { id, feed }
    }

    /// The id under which the session answers this subscriber.
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
            // Created before the look into the log, so that no wake-up is missed.
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
            self.feed.0.room_freed.notify_waiters();
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let relieves = self.feed.lock().detach(self.id);
        self.relieve(relieves);
    }
}

/// The result of taking from the log.
struct Look {
    took: bool,
    is_closed: bool,
}

#[cfg(test)]
mod schedules;

#[cfg(test)]
mod tests;
