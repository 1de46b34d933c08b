//! A session as one HTML file: readable on any screen, without a network, and harmless whatever the session holds.
//!
//! The page is written as it comes, an answer with its tool results at a time; nothing of it is kept. It shows the
//! current path, and reaches the other branches with its own script; without scripts all branches follow each other.
//! `page` is the only way to the output, and it takes text, never markup.

mod assets;
mod blocks;
mod diff;
mod document;
mod entry;
mod escape;
mod figures;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod gist;
mod markdown;
mod outline;
mod page;
mod system;
mod terminal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod totals;

use std::{
    io::{self, Write},
    path::Path,
};

use agentd_store::{LoadReport, SessionTree};

pub use self::file::ExportError;

/// Writes the page of a session. `report` is what was odd about its file; the page says so.
///
/// # Errors
/// What `out` reports. Many small writes come: `out` should have a buffer.
pub fn write(tree: &SessionTree, report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    document::write(tree, report, out)
}

/// Writes the page of a session into a file, which is there whole or not at all. One that is there already is replaced,
/// and keeps its permissions; a new one has those that any new file gets. Blocks on the disk.
///
/// # Errors
/// [`ExportError`], which names the file.
pub fn write_file(tree: &SessionTree, report: &LoadReport, path: &Path) -> Result<(), ExportError> {
    file::replace(path, |out| write(tree, report, out))
}

/// The name of the page where nobody chose one: `pi-session-<name of the session file>.html`, without a folder.
#[must_use]
pub fn default_file_name(session_file: &Path) -> String {
    let name = session_file.file_name().unwrap_or_default().to_string_lossy();
    format!("pi-session-{}.html", name.strip_suffix(".jsonl").unwrap_or(&name))
}
