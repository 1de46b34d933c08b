//! The tool `find`: finds files and folders by a glob, with the rules of `fd --glob --hidden`.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod tool;
mod tree;

pub use tool::{Find, FindTool};
