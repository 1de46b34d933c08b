//! What tool calls change, kept so that it can be undone.
//!
//! A [`Store`] keeps contents by their hash, below the agent directory. A folder that commands work in has an index of every file
//! in it, kept current by inotify, so that what a command deletes is in the store before. Each tool call that changed something is
//! a checkpoint of its session ([`SessionCheckpoints`]); a restoring is one, too, so that it can be undone like any other.
//!
//! Everything here blocks. Nothing here is made while undo is off.

mod capture;
mod command_guard;
mod diff;
mod folder;
mod kept;
mod limits;
mod prune;
mod recording;
mod records;
mod restore;
mod rules;
mod services;
mod session;
mod shared_folder;
mod state;
mod store;
mod watch;

#[cfg(test)]
mod hard_cases;
#[cfg(test)]
mod lost_cases;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod said_cases;
#[cfg(test)]
mod tests;

pub use command_guard::CommandGuard;
pub use limits::UndoLimits;
pub use recording::Gap;
pub use services::UndoServices;
pub use session::{CheckpointError, CheckpointSink, SessionCheckpoints, SessionFacts};
pub use state::{Change, FileState, ObjectId, StoredPath, Unkept};
pub use store::Store;
