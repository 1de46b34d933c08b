//! Commands that may be sent twice (`requestKey`): the first does the work, a repetition gets the first's answer.
//!
//! The key of a command is stored with the entry that the command caused, so that what a session knows outlives the
//! daemon: [`IdempotencyCache::of`] reads it back.

mod asked;
mod cache;

pub(crate) use self::{
    asked::PendingRequest,
    cache::{
        Admission, CachedAnswer, CommandKind, DISPOSITION_FIELD, IdempotencyCache, KEY_FIELD, RequestKey,
        RequestRecord,
    },
};
