//! The shared parts of the tools that search folders: walks in a fixed order, and truncated lists.

mod far_walk;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod list;
mod local_rules;
mod rules;
mod tool;
mod walk;

pub(crate) use far_walk::FarWalk;
pub(crate) use list::{List, Notices};
pub(crate) use rules::{UnusedFiles, WalkRules};
pub(crate) use tool::{SearchCall, limit};
pub use tool::{SearchKind, SearchTool};
pub(crate) use walk::{Entry, Next, Unread, Walk, Walked, walk_parallel};
