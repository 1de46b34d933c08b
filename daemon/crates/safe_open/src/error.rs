//! Why a file was not opened.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// A file that was not opened, and why. Its text is a sentence without its full stop that begins with the path.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct OpenError {
    path: PathBuf,
    problem: OpenProblem,
}

impl OpenError {
    pub(crate) fn new(path: &Path, problem: OpenProblem) -> Self {
        Self { path: path.to_owned(), problem }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it. Its text is the end of a sentence that begins with the name of the file.
    #[must_use]
    pub fn problem(&self) -> &OpenProblem {
        &self.problem
    }

    /// What is wrong with it, without the path.
    #[must_use]
    pub fn into_problem(self) -> OpenProblem {
        self.problem
    }

    /// Whether nothing is at that path.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.problem.is_missing()
    }
}

impl From<OpenError> for io::Error {
    /// The system's error as it was; else one of kind `InvalidInput`, or `PermissionDenied` for a file that somebody else may have made,
    /// with the text.
    fn from(error: OpenError) -> Self {
        match error.problem.kind() {
            Some(kind) => Self::new(kind, error),
            None => error.problem.into(),
        }
    }
}

impl From<OpenProblem> for io::Error {
    /// As of [`OpenError`], with a text that does not name the file: for errors that name it themselves.
    fn from(problem: OpenProblem) -> Self {
        match (problem.kind(), problem) {
            (_, OpenProblem::System(source)) => source,
            (kind, problem) => Self::new(kind.unwrap_or(io::ErrorKind::Other), problem.to_string()),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum OpenProblem {
    /// What the system said, also that there is none.
    System(io::Error),
    /// It is a symbolic link, and none is followed here.
    Link,
    /// A link on the way to it leads out of the folder that it must stay in.
    LeadsOut,
    /// It is no regular file.
    NotAFile(FileKind),
    /// It belongs to another user.
    Foreign {
        /// The number of that user.
        uid: u32,
    },
    /// It is longer than what is read.
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// It shows the state of processes, secrets of this one among it.
    OfProcesses,
}

impl OpenProblem {
    /// Whether nothing is there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(self, Self::System(error) if missing.contains(&error.kind()))
    }

    /// Whether the system lets the file be read by this user, if at all, and not be written: by its mode, or as its file system has it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let refusals = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        matches!(self, Self::System(error) if refusals.contains(&error.kind()))
    }

    /// The kind of error that it is to callers that know no more; `None` for the system's own.
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::System(_) => None,
            Self::Foreign { .. } | Self::Link | Self::LeadsOut => Some(io::ErrorKind::PermissionDenied),
            Self::NotAFile(_) | Self::TooLong { .. } | Self::OfProcesses => Some(io::ErrorKind::InvalidInput),
        }
    }
}

impl fmt::Display for OpenProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(out, "cannot be opened: {error}"),
            Self::Link => write!(
                out,
                "is a symbolic link, which is not followed here: put the file itself in its place"
            ),
            Self::LeadsOut => {
                write!(
                    out,
                    "is a symbolic link that leads out of its folder: put the file itself in its place"
                )
            }
            Self::NotAFile(kind) => {
                write!(out, "is {kind}, no regular file: move it away or put a file in its place")
            }
            Self::Foreign { uid } => {
                write!(
                    out,
                    "belongs to another user (uid {uid}), so that it is not used: `chown` it, or move it away"
                )
            }
            Self::TooLong { length, limit } => {
                write!(out, "is {length} bytes long, more than the {limit} that are read: make it shorter")
            }
            Self::OfProcesses => write!(out, "is a file of /proc, which shows the state of processes"),
        }
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl fmt::Display for FileKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}
