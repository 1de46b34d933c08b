//! Reads the file to edit, in a way that cannot damage it.

use std::{
    io::{self, Read},
    path::Path,
};

use agentd_agent::ToolError;
use rustix::io::Errno;

use crate::{
    errno,
    file_changes::ReadFile,
    operations::{FileKind, FileSnapshot, FileStamp, FileSystem, OpenFile},
    truncate::format_size,
};

/// The largest file that is edited: 64 MiB. Larger files are data, better changed by a command.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// The byte order mark that some programs put before the text.
const BOM: &str = "\u{feff}";

/// The text of a file.
pub(crate) struct TextFile {
    content: String,
    text_start: usize,
    stamp: FileStamp,
}

impl TextFile {
    /// Reads the file at `path`, which must be readable, writable and UTF-8; `given` is its name in messages.
    ///
    /// # Errors
    /// Why the file cannot be edited.
    pub(crate) fn read(files: &dyn FileSystem, path: &Path, given: &str) -> Result<Self, ToolError> {
        let failed = |error: &io::Error| unreachable_file(given, error);
        files.check_change(path).map_err(|error| failed(&error))?;
        let OpenFile { about, stamp, content, .. } = files.open(path).map_err(|error| failed(&error))?;
        match about.kind {
            FileKind::File => {}
            FileKind::Folder => return Err(failed(&Errno::ISDIR.into())),
            _ => return Err(ToolError(format!("Could not edit file: {given}. It is not a regular file."))),
        }
        let bytes = read_bounded(content, about.length).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MAX_SIZE {
            let limit = format_size(MAX_SIZE);
            return Err(ToolError(format!(
                "Could not edit file: {given}. It is larger than {limit}; use bash to change it."
            )));
        }
        let content = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            ToolError(format!(
                "Could not edit file: {given}. It is not UTF-8 text (at byte {at}), and an edit would damage it; \
                 use bash to change it."
            ))
        })?;
        let text_start = if content.starts_with(BOM) { BOM.len() } else { 0 };
        Ok(Self { content, text_start, stamp })
    }

    /// The file's state when it was read.
    pub(crate) fn before(&self) -> FileSnapshot<'_> {
        FileSnapshot { stamp: &self.stamp, content: self.content.as_bytes() }
    }

    /// The file as it was when it was read.
    pub(crate) fn into_read(self) -> ReadFile {
        ReadFile { content: self.content.into_bytes(), stamp: self.stamp }
    }

    /// The text without the byte order mark.
    pub(crate) fn text(&self) -> &str {
        &self.content[self.text_start..]
    }

    /// A text of the model as it is within [`Self::text`]: without the byte order mark that it may repeat.
    pub(crate) fn without_mark<'a>(&self, text: &'a str) -> &'a str {
        if self.text_start > 0 { text.strip_prefix(BOM).unwrap_or(text) } else { text }
    }

    /// The file's content with `text` as its text.
    pub(crate) fn with_text(&self, text: String) -> String {
        if self.text_start > 0 { format!("{BOM}{text}") } else { text }
    }
}

/// The error for a file that cannot be opened.
pub(crate) fn unreachable_file(given: &str, error: &io::Error) -> ToolError {
    let unreadable = || format!("Could not edit file: {given}. Error code: {}.", errno::code(error));
    ToolError(errno::whole_message(error).unwrap_or_else(unreadable))
}

/// Reads at most one byte more than the limit.
fn read_bounded(file: impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(MAX_SIZE)).unwrap_or_default() + 1);
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
