//! Reading a file that people keep by hand: bounded, regular files only.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenError, OpenProblem, OpenRules};

/// The longest text file (instructions, prompts) that is read: 1 MiB. Models take less.
pub const MAX_TEXT_BYTES: u64 = 1024 * 1024;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// A directory, a device or the like.
    #[error("{} {}", path.display(), self.problem())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Longer than the limit.
    #[error("{} {}", path.display(), self.problem())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file that is not to be used: of `/proc`, or, where that matters, another user's or behind a link.
    #[error("{} {}", path.display(), self.problem())]
    Refused {
        /// The path.
        path: PathBuf,
        /// Why not.
        problem: OpenProblem,
    },
    /// The file system refused.
    #[error("{} {}", path.display(), self.problem())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl TextFileError {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::NotAFile { path }
            | Self::TooLarge { path, .. }
            | Self::Refused { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// The fault, as the end of a sentence that begins with the file's name.
    #[must_use]
    pub fn problem(&self) -> String {
        match self {
            Self::NotAFile { .. } => "is no regular file: move it away or put a file in its place".into(),
            Self::TooLarge { size, limit, .. } => {
                format!("is {size} bytes long, more than the {limit} that are read: make it shorter")
            }
            Self::Refused { problem, .. } => problem.to_string(),
            Self::Io { source, .. } => format!("cannot be read: {source}"),
        }
    }
}

impl From<OpenError> for TextFileError {
    fn from(error: OpenError) -> Self {
        let path = error.path().to_owned();
        match error.into_problem() {
            OpenProblem::NotAFile(_) => Self::NotAFile { path },
            OpenProblem::TooLong { length, limit } => Self::TooLarge { path, size: length, limit },
            OpenProblem::System(source) => Self::Io { path, source },
            problem @ (OpenProblem::Link
            | OpenProblem::LeadsOut
            | OpenProblem::Foreign { .. }
            | OpenProblem::OfProcesses) => Self::Refused { path, problem },
        }
    }
}

/// Reads a regular file of any user with at most `limit` bytes, following links; `None` when it does not exist.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, TextFileError> {
    Ok(OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(limit).read(path)?)
}

/// [`read_bytes`] as text without a byte order mark; what is not UTF-8 becomes U+FFFD.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, TextFileError> {
    let bytes = read_bytes(path, MAX_TEXT_BYTES)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(without_mark(&bytes)).into_owned()))
}

/// The bytes after a UTF-8 byte order mark, if there is one.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(read_text(&path).unwrap().is_none());
        std::fs::write(&path, b"\xEF\xBB\xBFa\xFFb").unwrap();
        assert_eq!(read_text(&path).unwrap().unwrap(), "a\u{FFFD}b");
        assert!(read_text(&path.join("below")).unwrap().is_none());
        assert!(matches!(read_text(folder.path()), Err(TextFileError::NotAFile { .. })));
        let error = read_bytes(&path, 5).unwrap_err().to_string();
        assert!(error.contains("file is 6 bytes long, more than the 5"), "{error}");
        if Path::new("/proc/self/environ").exists() {
            let error = read_text(Path::new("/proc/self/environ")).unwrap_err();
            assert!(
                matches!(error, TextFileError::Refused { problem: OpenProblem::OfProcesses, .. }),
                "{error}"
            );
        }
    }
}
