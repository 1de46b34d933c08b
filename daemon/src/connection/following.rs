//! One session's feed on its way to a client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::{Json, message::Message};
use agentd_session::{FeedItem, Subscriber};
use async_stream::stream;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::watching::Told;

/// What a feed gives to the writer.
pub(super) enum Batch {
    /// Items in order, of a session.
    Items(Arc<str>, Vec<FeedItem>),
    /// What happened to sessions, followed or not: to a client that watches them.
    News(Vec<Told>),
    /// A watcher has come to its end.
    Unwatched,
    /// Nothing more comes of this session.
    End {
        /// Its id.
        session: Arc<str>,
        /// It has ended while it was followed; else it is no longer followed.
        has_ended: bool,
    },
}

/// What a session owes a connection that leaves it: answers to commands, counted where these are sent and where the
/// answer passes, and events that the connection waited for.
#[derive(Clone, Default)]
pub(super) struct Pending(Arc<Owed>);

#[derive(Default)]
struct Owed {
    answers: AtomicU64,
    /// The last event that is owed; 0 for none.
    through: AtomicU64,
}

impl Pending {
    pub(super) fn add(&self) {
        self.0.answers.fetch_add(1, Ordering::AcqRel);
    }

    /// A command that was counted was not sent after all.
    pub(super) fn take_back(&self) {
        self.answered(1);
    }

    fn answered(&self, count: u64) {
        self.0.answers.fetch_sub(count, Ordering::AcqRel);
    }

    /// Events up to this one are owed, also to a connection that leaves.
    pub(super) fn add_events_through(&self, seq: u64) {
        self.0.through.fetch_max(seq, Ordering::AcqRel);
    }

    fn events_through(&self) -> u64 {
        self.0.through.load(Ordering::Acquire)
    }

    fn is_none(&self) -> bool {
        self.0.answers.load(Ordering::Acquire) == 0
    }
}

/// A feed that is to be followed.
pub(super) struct Following {
    pub(super) session: Arc<str>,
    pub(super) feed: Subscriber,
    pub(super) pending: Pending,
    /// Fires when only answers are wanted from here on. The feed is let go once all have come.
    pub(super) leaving: CancellationToken,
    /// The answer in the middle of which it is followed, if it is.
    pub(super) so_far: Option<Json<Message>>,
}

impl Following {
    /// The feed's items until the session ends, or is no longer followed and every answer has come.
    pub(super) fn batches(self) -> impl Stream<Item = Batch> + Send {
        let Self { session, mut feed, pending, leaving, so_far: _ } = self;
        stream! {
            let mut items = Vec::new();
            let mut left = false;
            loop {
                if leaving.is_cancelled() && !left {
                    let (through, mut seen) = (pending.events_through(), 0);
                    while seen < through && feed.ready_items(&mut items) {
                        seen = items.iter().filter_map(seq).next_back().unwrap_or(seen);
                        pending.answered(answers(&items));
                        yield Batch::Items(Arc::clone(&session), std::mem::take(&mut items));
                    }
                    left = true;
                    feed.mute();
                }
                if left && pending.is_none() {
                    // What is for this client alone is never dropped.
                    if !feed.ready_items(&mut items) {
                        break;
                    }
                    pending.answered(answers(&items));
                    yield Batch::Items(Arc::clone(&session), std::mem::take(&mut items));
                    continue;
                }
                let more = tokio::select! {
                    biased;
                    () = leaving.cancelled(), if !left => continue,
                    more = feed.next_items(&mut items) => more,
                };
                pending.answered(answers(&items));
                if !items.is_empty() {
                    yield Batch::Items(Arc::clone(&session), std::mem::take(&mut items));
                }
                if !more {
                    break;
                }
            }
            drop(feed);
            yield Batch::End { session, has_ended: !left };
        }
    }
}

fn answers(items: &[FeedItem]) -> u64 {
    items.iter().filter(|item| matches!(item, FeedItem::Reply { .. })).count() as u64
}

fn seq(item: &FeedItem) -> Option<u64> {
    match item {
        FeedItem::Event { seq, .. } => Some(*seq),
        FeedItem::Reply { .. } | FeedItem::Addressed { .. } | FeedItem::Lagged { .. } => None,
    }
}
