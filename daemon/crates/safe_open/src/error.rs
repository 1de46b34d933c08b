//! Why a file was not opened.

use std::{
    fmt,
    fs::FileType,
    io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// A file that was not opened, and why. Displayed as a sentence without its full stop that begins with the path.
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

    /// The path that was to be opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the file. Displayed as the end of a sentence that begins with the file's name.
    #[must_use]
    pub fn problem(&self) -> &OpenProblem {
        &self.problem
    }

    /// The problem without the path.
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
    /// Keeps the system's error. Any other becomes `InvalidInput`, or `PermissionDenied` for a file that somebody else
    /// may have made, with this error's text.
    fn from(error: OpenError) -> Self {
        match error.problem.kind() {
            Some(kind) => Self::new(kind, error),
            None => error.problem.into(),
        }
    }
}

impl From<OpenProblem> for io::Error {
    /// As for [`OpenError`], without the file's name: for errors that name it themselves.
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
    /// The system's error, including that the file does not exist.
    System(io::Error),
    /// It is a symbolic link, and links are not followed here.
    Link,
    /// A link on the path leads out of the folder that it must stay in.
    LeadsOut,
    /// It is no regular file.
    NotAFile(FileKind),
    /// It belongs to another user.
    Foreign {
        /// The number of that user.
        uid: u32,
    },
    /// It is longer than the limit.
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// It is a file of `/proc`, which may show secrets of this process.
    OfProcesses,
}

impl OpenProblem {
    /// Whether nothing is at that path.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(self, Self::System(error) if missing.contains(&error.kind()))
    }

    /// Whether the system denies this user the access: by the file's mode, or because the file system is read-only.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let refusals = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        matches!(self, Self::System(error) if refusals.contains(&error.kind()))
    }

    /// The error kind for callers that do not know this type; `None` for the system's own errors.
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

/// The kind of file at a path.
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
    /// A device, or unknown.
    Device,
    /// A symbolic link; only in listings of folders.
    Link,
    /// A file of `/proc`; only for opened files.
    OfProcesses,
}

impl fmt::Display for FileKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Link => "a symbolic link",
            Self::OfProcesses => "a file of /proc",
        })
    }
}

impl From<FileType> for FileKind {
    fn from(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Folder
        } else if file_type.is_symlink() {
            Self::Link
        } else if file_type.is_fifo() {
            Self::Pipe
        } else if file_type.is_socket() {
            Self::Socket
        } else {
            Self::Device
        }
    }
}
