//! The steps of a change of several files.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{
    errno,
    operations::{FileKind, FileSnapshot, FileStamp, FileSystem, OpenFile},
    truncate::format_size,
};

/// A file as it was when it was read.
#[derive(Debug, Clone)]
pub struct ReadFile {
    /// Its content.
    pub content: Vec<u8>,
    /// Its state when it was opened.
    pub stamp: FileStamp,
}

impl ReadFile {
    /// Reads a regular file of at most `max_bytes`. Blocks.
    ///
    /// # Errors
    /// A sentence that names the file as `given`.
    pub fn read(files: &dyn FileSystem, path: &Path, given: &str, max_bytes: u64) -> Result<Self, String> {
        let failed = |error: &io::Error| errno::describe(error, "open", path);
        let OpenFile { about, stamp, content, .. } = files.open(path).map_err(|error| failed(&error))?;
        if about.kind != FileKind::File {
            return Err(format!("{given} is not a regular file"));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(about.length.min(max_bytes)).unwrap_or(0));
        content.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > max_bytes {
            return Err(format!("{given} is larger than {}", format_size(max_bytes)));
        }
        Ok(Self { content: bytes, stamp })
    }

    /// Whether the file is as it was when it was read. Blocks.
    ///
    /// # Errors
    /// The system's; what is no regular file by now is none.
    pub(super) fn is_still(&self, files: &dyn FileSystem, path: &Path) -> io::Result<bool> {
        let OpenFile { about, content, .. } = files.open(path)?;
        if about.kind != FileKind::File {
            return Ok(false);
        }
        // One that is longer now is another one.
        let mut bytes = Vec::with_capacity(self.content.len() + 1);
        content.take(self.content.len() as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes == self.content)
    }

    pub(super) fn snapshot(&self) -> FileSnapshot<'_> {
        FileSnapshot { stamp: &self.stamp, content: &self.content }
    }
}

/// A step of a change. Paths are absolute and without links.
#[derive(Debug, Clone)]
pub enum FileChange {
    /// Gives a file another content, or makes it.
    Write {
        /// The file.
        path: PathBuf,
        /// The new content.
        content: Vec<u8>,
        /// The file as it was read; `None` for one that must not be there.
        before: Option<ReadFile>,
    },
    /// Gives a file another path, where nothing is.
    Move {
        /// The file.
        from: PathBuf,
        /// Its new path.
        to: PathBuf,
    },
    /// Removes a file.
    Remove {
        /// The file.
        path: PathBuf,
        /// The file as it was read.
        before: ReadFile,
    },
}

impl FileChange {
    /// The paths that the step touches.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::Write { path, .. } | Self::Remove { path, .. } => (path, None),
            Self::Move { from, to } => (from, Some(to)),
        };
        std::iter::once(one.as_path()).chain(other.map(PathBuf::as_path))
    }
}
