//! The events of a session, numbered, in one order for all subscribers, and the answers to each.
//!
//! [`log`] is the bookkeeping, [`feed`] shares it between the actor and the subscribers, and waits.

mod events;
mod feed;
mod log;
mod subscription;

pub use self::{
    events::{Audience, FeedItem, SubscriberId},
    feed::{Feed, FeedLimits, Subscriber},
};
