//! The tool `grep`: lines that fit a regular expression, in a file or below a folder.
//!
//! It is ripgrep's engine in this process. Files are searched by several threads and shown in the order of the walk.

mod far;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod input;
mod pattern;
mod tool;
mod tree;

pub use tool::{Grep, GrepTool};
