//! Isolated copies of git repositories, in which subagents work, and the merging of what they changed.
//!
//! [`Isolation::begin`] makes a copy of a repository as it is: with what is staged, changed and untracked, and with the repositories
//! inside. The child works in [`IsolatedCopy::cwd`]. [`IsolatedCopy::capture`] turns its changes into a patch file or a branch
//! ([`Captured`]), which needs the copy no longer; [`merge`] brings them into the user's files, whole or not at all.
//!
//! The rule above all others is that nothing of the user's is lost. Merging touches no file before it is known that everything
//! fits, replaces files by exchanging them, and puts all back when one of them turns out to have changed meanwhile
//! (`working_files`).
//!
//! git runs as a process under the guard, never through a shell, without hooks, prompts or signing ([`Git`]). Filters that the user's git configuration
//! names, such as those of git-lfs, do run. This crate knows nothing of sessions, models or tools.

mod baseline;
mod capture;
mod changes;
mod commits;
mod error;
mod git;
mod isolated_copy;
mod leftovers;
mod merge;
mod merge_branch;
mod merge_lock;
mod merge_patch;
mod objects;
mod populate;
mod record;
mod removal;
mod repository;
mod tree_paths;
mod working_files;

pub use capture::{CaptureMode, CaptureOptions, MessageFuture, MessageWriter};
pub use changes::{Captured, CapturedUnit, UnitChange};
pub use error::IsolationError;
pub use git::Git;
pub use isolated_copy::{Backend, IsolatedCopy, Isolation, IsolationOptions};
pub use leftovers::{Leftover, LeftoverFate};
pub use merge::{discard, merge};
