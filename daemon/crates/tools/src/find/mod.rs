//! The tool `find`: files and folders whose names fit a glob. The rules are those of `fd --glob --hidden`.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod pattern;
mod tool;
mod tree;

pub use tool::{Find, FindTool};
