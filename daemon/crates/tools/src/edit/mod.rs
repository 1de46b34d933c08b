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

pub(crate) use apply::{Change, apply};
pub(crate) use diff::show;
pub(crate) use line_endings::{apply as with_line_endings, normalize as normalized_text};
pub use preview::edited_text;
pub(crate) use text_file::{TextFile, unreachable_file};
pub use tool::EditTool;
