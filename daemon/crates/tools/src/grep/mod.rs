//! The tool `grep`: finds lines that match a regular expression, in a file or below a folder.
//!
//! It uses ripgrep's engine in this process. Several threads search the files; the results are in the order of the
//! walk.

mod far;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod tool;
mod tree;

pub use tool::{Grep, GrepTool};
