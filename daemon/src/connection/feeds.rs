//! The streams that the writer merges: the feeds of followed sessions, and the changes of all sessions for a client that watches them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::{
    Json,
    daemon::{SessionActivity, SessionChanged, SessionOpened},
    event::Event,
    message::Message,
};
use agentd_session::{FeedItem, Subscriber};
use async_stream::stream;
use bytes::Bytes;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::activity_sampler::ActivitySampler;
use crate::hub::{SessionChange, SessionRegistry, SessionWatcher};

/// The next output of a stream that the writer merges.
pub(super) enum OutputBatch {
    /// Items in order, of a session.
    Items(Arc<str>, Vec<FeedItem>),
    /// Changes of any sessions, for a client that watches them.
    Changes(Vec<WatchOutput>),
    /// A watch has ended.
    Unwatched,
    /// Nothing more comes of this session.
    End {
        /// Its id.
        session: Arc<str>,
        /// True when the session ended while it was followed; false when it is no longer followed.
        has_ended: bool,
    },
}

/// The output that a session owes a connection that leaves it: answers, counted up when a command is sent and down when its answer
/// passes, and events that the connection waited for.
#[derive(Clone, Default)]
pub(super) struct OwedReplies(Arc<Owed>);

#[derive(Default)]
struct Owed {
    answers: AtomicU64,
    /// The last event that is owed; 0 for none.
    through: AtomicU64,
}

impl OwedReplies {
    pub(super) fn add(&self) {
        self.0.answers.fetch_add(1, Ordering::AcqRel);
    }

    /// Uncounts a command that was not sent after all.
    pub(super) fn take_back(&self) {
        self.answered(1);
    }

    fn answered(&self, count: u64) {
        self.0.answers.fetch_sub(count, Ordering::AcqRel);
    }

    /// Events up to this one are owed, even to a connection that leaves.
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

/// A session's feed, on its way to the writer.
pub(super) struct FollowedFeed {
    pub(super) session: Arc<str>,
    pub(super) feed: Subscriber,
    pub(super) owed: OwedReplies,
    /// Fires when only answers are wanted from here on. The feed is dropped once all have come.
    pub(super) leaving: CancellationToken,
    /// The answer so far, when the client joins in the middle of one.
    pub(super) so_far: Option<Json<Message>>,
}

impl FollowedFeed {
    /// The feed's items, until the session ends, or is no longer followed and every answer has come.
    pub(super) fn batches(self) -> impl Stream<Item = OutputBatch> + Send {
        let Self { session, mut feed, owed, leaving, so_far: _ } = self;
        stream! {
            let mut items = Vec::new();
            let mut left = false;
            loop {
                if leaving.is_cancelled() && !left {
                    let (through, mut seen) = (owed.events_through(), 0);
                    while seen < through && feed.ready_items(&mut items) {
                        seen = items.iter().filter_map(seq).next_back().unwrap_or(seen);
                        owed.answered(answers(&items));
                        yield OutputBatch::Items(Arc::clone(&session), std::mem::take(&mut items));
                    }
                    left = true;
                    feed.mute();
                }
                if left && owed.is_none() {
                    // Lines for this client alone are never dropped.
                    if !feed.ready_items(&mut items) {
                        break;
                    }
                    owed.answered(answers(&items));
                    yield OutputBatch::Items(Arc::clone(&session), std::mem::take(&mut items));
                    continue;
                }
                let more = tokio::select! {
                    biased;
                    () = leaving.cancelled(), if !left => continue,
                    more = feed.next_items(&mut items) => more,
                };
                owed.answered(answers(&items));
                if !items.is_empty() {
                    yield OutputBatch::Items(Arc::clone(&session), std::mem::take(&mut items));
                }
                if !more {
                    break;
                }
            }
            drop(feed);
            yield OutputBatch::End { session, has_ended: !left };
        }
    }
}

fn answers(items: &[FeedItem]) -> u64 {
    let is_answer = |item: &&FeedItem| matches!(item, FeedItem::Reply { .. } | FeedItem::LongReply { .. });
    items.iter().filter(is_answer).count() as u64
}

fn seq(item: &FeedItem) -> Option<u64> {
    match item {
        FeedItem::Event { seq, .. } => Some(*seq),
        FeedItem::Reply { .. }
        | FeedItem::LongReply { .. }
        | FeedItem::Addressed { .. }
        | FeedItem::Lagged { .. } => None,
    }
}

/// An output of a watch.
pub(super) enum WatchOutput {
    /// A finished event.
    Line(Bytes),
    /// The session is closed.
    Closed(Arc<str>),
}

/// The changes of all sessions, on their way to the writer.
pub(super) struct SessionWatch {
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) watcher: SessionWatcher,
    /// Set where the client wants to hear what the sessions are doing.
    pub(super) activities: Option<ActivitySampler>,
    /// Fires when the watch ends.
    pub(super) leaving: CancellationToken,
}

impl SessionWatch {
    /// The changes, until the watch ends.
    pub(super) fn batches(self) -> impl Stream<Item = OutputBatch> + Send {
        let Self { registry, watcher, mut activities, leaving } = self;
        stream! {
            loop {
                let changes = tokio::select! {
                    () = leaving.cancelled() => break,
                    changes = watcher.next() => changes,
                    sampled = next_activities(&mut activities, &registry) => {
                        let lines = sampled.into_iter().filter_map(|activity| encoded(&Event::from(activity)));
                        yield OutputBatch::Changes(lines.map(WatchOutput::Line).collect());
                        continue;
                    }
                };
                if let Some(activities) = &mut activities {
                    changes.iter().for_each(|(id, change)| activities.note(id, *change));
                }
                let mut outputs = Vec::with_capacity(changes.len());
                for (id, change) in changes {
                    if matches!(change, SessionChange::Closed | SessionChange::Reopened) {
                        outputs.push(WatchOutput::Closed(Arc::clone(&id)));
                    }
                    if change != SessionChange::Closed && let Some(line) = line(&registry, &id, change) {
                        outputs.push(WatchOutput::Line(line));
                    }
                }
                yield OutputBatch::Changes(outputs);
            }
            yield OutputBatch::Unwatched;
        }
    }
}

/// Waits for new activities, for ever where none are wanted. Cancel safe.
async fn next_activities(
    activities: &mut Option<ActivitySampler>,
    registry: &SessionRegistry,
) -> Vec<SessionActivity> {
    match activities {
        Some(activities) => activities.next(registry).await,
        None => std::future::pending().await,
    }
}

/// `None` for a session that was closed meanwhile: the next batch reports that.
fn line(registry: &SessionRegistry, id: &str, change: SessionChange) -> Option<Bytes> {
    let session = registry.get(id)?.info();
    let event = match change {
        SessionChange::Changed => Event::from(SessionChanged { session }),
        SessionChange::Opened | SessionChange::Reopened | SessionChange::Closed => {
            Event::from(SessionOpened { session })
        }
    };
    encoded(&event)
}

fn encoded(event: &Event) -> Option<Bytes> {
    match serde_json::to_vec(event) {
        Ok(line) => Some(line.into()),
        Err(error) => {
            tracing::error!(%error, "cannot write an event");
            None
        }
    }
}
