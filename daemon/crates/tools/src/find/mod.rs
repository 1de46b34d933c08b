//! The tool `find`: files and folders whose names fit a glob. The rules are those of `fd --glob --hidden`.

mod pattern;
mod tool;
mod tree;

pub use tool::{Find, FindTool};
