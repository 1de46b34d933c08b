//! A change of several files at once, as language servers propose it and rewritings of code make it: all of it happens, or nothing.
//!
//! It takes the same way as a change by `edit` or `write`: the turn of each file, what protects the agent directory, the sandbox, the
//! check that nobody has changed a file meanwhile, and one checkpoint for undo.

mod approval;
mod change;
mod journal;
mod place;
mod steps;

pub use approval::{ApprovalFuture, ChangeApproval, ProposedChange};
pub use change::{FileChange, ReadFile};
pub use journal::{ChangeJournals, TakenBack};
pub use place::ChangePlace;
