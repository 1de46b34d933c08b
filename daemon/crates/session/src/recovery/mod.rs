//! Crash recovery: what becomes of a session whose daemon ended in the middle of its work.
//!
//! When a session is opened and its intent log is not empty, the entries that the crash kept from being written are added:
//! first a [`plan`] (pure: what the session file lacks by the intent log), then [`recover`](recover()) (the disk). Repeating it after
//! a crash at any point has the same result: it adds only entries that are missing.
//!
//! A run records what it is about to do before it does it, in the intent log. The journal writes the record together with the entry that
//! comes before (the question to the model with the prompt, the calls with their answer); the run writes it itself where there is no such
//! entry (`run/intents.rs`). Streamed text follows once a second while deltas come. `docs/crash-recovery.md` describes the results.

mod pending;
mod plan;
mod recover;

pub(crate) use pending::{
    AfterCrash, HeldMessages, Origin, ResumeQuestion, Unflushed, UnflushedWrites, write_refused,
};
pub(crate) use plan::{InterruptionCause, RecoveryPlan, plan_recovery, plan_recovery_after};
pub(crate) use recover::{recover, waiting_messages};
