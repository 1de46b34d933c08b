//! The `edit` tool: exact replacements in one file, tolerant of quotes, dashes and spaces.

mod apply;
mod diff;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod fuzzy;
mod line_endings;
mod matching;
mod prepare;
mod preview;
mod text_file;
mod tool;

pub use preview::edited_text;
pub use tool::EditTool;
