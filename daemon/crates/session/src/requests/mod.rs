//! Commands that a client may send twice (`requestKey`): the first does the work, a repetition gets the first's answer.
//!
//! The key of a command is stored with the entry that the command caused, so that the cache outlives the daemon:
//! [`IdempotencyCache::of`] reads it back.

mod cache;
mod pending_request;

pub(crate) use self::{
    cache::{
        Admission, CachedAnswer, CommandKind, DISPOSITION_FIELD, IdempotencyCache, KEY_FIELD, RequestKey,
        RequestRecord,
    },
    pending_request::PendingRequest,
};
