//! The entries of a session, and the intent log: what a run is about to do, on disk before it happens.

mod intent_log;
mod journal;

pub(crate) use self::{
    intent_log::{Intents, MAX_RESULT, SessionIntentLog, ask_record},
    journal::{FailedAnswer, Journal, model_change, store_failure},
};
