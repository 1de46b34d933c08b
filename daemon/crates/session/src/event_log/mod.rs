//! The events of a session, numbered, in one order for all subscribers, and the answers to each.
//!
//! [`log`] is the bookkeeping, [`feed`] shares it between the actor and the subscribers, and waits.
//!
//! The log knows how many bytes each subscriber still has to take. When that is `daemon.outboxBytes` (1 MiB) for one of them, the log is
//! full: the actor takes no more messages of the run, their channel fills, the run waits, and the provider's connection is not read. A
//! subscriber that is alone is waited for. One that holds up others for `daemon.lagGraceMs` is cut off: its events are dropped, and it gets
//! `lagged`. Responses are never dropped; when a connection takes none of them, no more of its commands are taken. A subscriber that
//! detaches frees its share at once, and the newest `daemon.replayBytes` of events stay for clients that come back.

mod events;
mod feed;
mod log;
mod long_reply;
mod message_ids;
mod subscription;

pub(crate) use self::long_reply::LongContent;
pub use self::{
    events::{Audience, FeedItem, SubscriberId},
    feed::{Feed, FeedLimits, Subscriber},
    long_reply::{LongReply, LongReplyWriter},
    message_ids::MessageId,
};
