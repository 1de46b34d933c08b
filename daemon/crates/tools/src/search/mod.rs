//! What the tools share that look through folders: walking them in a fixed order, and lists that are cut.

mod far_walk;
mod list;
mod place;
mod tool;
mod walk;

pub(crate) use far_walk::{FarEntry, FarWalk};
pub(crate) use list::{List, Notices};
pub(crate) use place::Place;
pub(crate) use tool::{Here, limit};
pub use tool::{SearchKind, SearchTool};
pub(crate) use walk::{Walk, WalkRules, Walked};
