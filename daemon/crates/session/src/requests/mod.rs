//! Commands that may be sent twice (`requestKey`): the first does the work, a repetition gets the first's answer.
//!
//! The key of a command is stored with the entry that the command caused, so that what a session knows outlives the
//! daemon: [`Ledger::of`] reads it back.

mod asked;
mod ledger;

pub(crate) use self::{
    asked::Asked,
    ledger::{Answer, DISPOSITION_FIELD, KEY_FIELD, Ledger, Means, Record, RequestKey},
};
