//! The tool `patch`: applies a unified diff, to all of its files or to none.

mod name;
mod parse;
mod place;
mod prepare;
mod report;
mod tool;

pub use tool::{PatchOptions, PatchTool};

/// The names of the files that a diff changes, as they are before it; none for what is no diff.
#[must_use]
pub fn files_of_patch(diff: &str) -> Vec<String> {
    let files = parse::parse(diff).unwrap_or_default();
    files.into_iter().map(|file| file.target.name().to_owned()).collect()
}
