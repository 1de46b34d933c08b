//! The interface through which tools access files.

use std::{
    ffi::OsString,
    fs::Metadata,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

pub use agentd_safe_open::FileKind;
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::WriteError;

/// A machine, or memory, with files. Shared by the calls of a session's tools.
pub trait FileHost: Send + Sync {
    /// The files for one call. Its operations end soon after `cancel` fires, with any error.
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem>;

    /// The folder that `~` means on this host; `None` leaves that to the session's environment.
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Files and folders. Paths are absolute and without `.` and `..`.
///
/// All methods block and belong on a blocking thread. Errors carry the system's own codes (`raw_os_error`) on every
/// host, so that messages read the same; or an [`Unreachable`](super::Unreachable).
pub trait FileSystem: Send + Sync {
    /// Opens a path for reading. Never waits, even for a pipe.
    ///
    /// # Errors
    /// The system's. Opening a folder succeeds; its kind tells.
    fn open(&self, path: &Path) -> io::Result<OpenFile>;

    /// The facts about a path, symbolic links followed.
    ///
    /// # Errors
    /// The system's.
    fn about(&self, path: &Path) -> io::Result<FileFacts>;

    /// Checks that a file may be read and written.
    ///
    /// # Errors
    /// The system's reason against it.
    fn check_change(&self, path: &Path) -> io::Result<()>;

    /// Resolves every symbolic link of a path. Of a path that does not exist, the existing part is resolved and the
    /// rest kept, so that two names of a future file are the same file. A link to a missing file resolves to that file.
    ///
    /// # Errors
    /// The system's for a folder on the path, such as a circle of links or a missing permission; a missing file or
    /// folder is no error.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// The path of a folder at which a walk starts. On this machine it has no links, because ignore files above it
    /// count, too.
    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        folder.to_owned()
    }

    /// Whether tools may write the file at a path, apart from the system's permissions. Hosts that allow every path
    /// need not implement it.
    ///
    /// # Errors
    /// [`WriteError::Guarded`], or [`WriteError::System`] when the path cannot be resolved.
    fn may_write(&self, _path: &Path) -> Result<(), WriteError> {
        Ok(())
    }

    /// Creates a folder and its missing parents.
    ///
    /// # Errors
    /// The system's.
    fn create_folders(&self, path: &Path) -> io::Result<()>;

    /// Atomically makes `content` the content of the file at a path whose folder exists: readers see the old content or
    /// the new. Symbolic links stay, and their target is replaced, keeping its permissions.
    ///
    /// With `before`, writes only if the file is still as it was then.
    ///
    /// # Errors
    /// [`WriteError`]; [`WriteError::Changed`] only with `before`.
    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError>;

    /// Gives a file another path, whose folder exists and where nothing is. Its content and its permissions stay. Hosts on which no tool
    /// does that need not implement it.
    ///
    /// # Errors
    /// [`WriteError::System`] with the system's reason, such as that the other path exists.
    fn move_file(&self, from: &Path, _to: &Path) -> Result<(), WriteError> {
        Err(WriteError::System { call: "rename", path: from.to_owned(), source: Errno::OPNOTSUPP.into() })
    }

    /// Removes a file. Hosts on which no tool does that need not implement it.
    ///
    /// # Errors
    /// [`WriteError::System`] with the system's reason.
    fn remove_file(&self, path: &Path) -> Result<(), WriteError> {
        Err(WriteError::System { call: "unlink", path: path.to_owned(), source: Errno::OPNOTSUPP.into() })
    }

    /// The entries of each of the folders, in any order, without `.` and `..`. A remote host answers several folders in
    /// one exchange; asking for more than [`FileSystem::batch`] is not needed.
    ///
    /// # Errors
    /// The outer error: nothing can be listed. The inner errors: of one folder.
    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>>;

    /// Reads files in their order and passes each to `take`, which returns whether to continue; the rest of a file that
    /// `take` does not read is skipped. Only regular files are read; others are an error of that file. This default
    /// opens each file by itself; a remote host uses fewer exchanges.
    ///
    /// # Errors
    /// The host cannot be reached. Errors of one file go to `take`.
    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        for (number, path) in files.iter().enumerate() {
            let wants_more = match self.open(path) {
                Ok(OpenFile { about: FileFacts { kind: FileKind::File, .. }, mut content, .. }) => {
                    take(number, Ok(&mut *content as &mut dyn Read))
                }
                Ok(_) => take(number, Err(Errno::INVAL.into())),
                Err(error) => take(number, Err(error)),
            };
            if !wants_more {
                break;
            }
        }
        Ok(())
    }

    /// How many folders or files to ask for at once.
    fn batch(&self) -> usize {
        1
    }

    /// Whether the files are on this machine, so that programs and libraries can open them by their paths.
    fn is_local(&self) -> bool {
        false
    }
}

/// Takes a file by its number; returns whether more are wanted.
pub type TakeFile<'a> = &'a mut dyn FnMut(usize, io::Result<&mut dyn Read>) -> bool;

/// A file that was opened for reading.
pub struct OpenFile {
    /// Its kind and length.
    pub about: FileFacts,
    /// Its state when it was opened.
    pub stamp: FileStamp,
    /// How many bytes are safe to read: some files have no end.
    pub limit: u64,
    /// The content of a regular file; for other kinds, whatever reading returns.
    pub content: Box<dyn Read + Send>,
}

/// Facts about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Its kind.
    pub kind: FileKind,
    /// Bytes of a regular file; meaningless for others.
    pub length: u64,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name.
    pub name: OsString,
    /// Its own kind, links not followed.
    pub kind: FileKind,
    /// The kind of its target, links followed; `None` when the target is missing.
    pub target: Option<FileKind>,
}

/// The age after which two changes can no longer look like one: the resolution of the coarsest file systems.
const SETTLED: Duration = Duration::from_secs(2);

/// Identifies one state of a file.
///
/// File systems note changes with a clock of a few hundred ticks a second at best, so two changes may look like one. A
/// stamp that was taken long enough after the last change is sure: a file with the same stamp has the same content. For
/// other stamps, the content itself must be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// The file's device and inode.
    pub file: (u64, u64),
    /// Bytes.
    pub length: u64,
    /// Times of the last change of content and of attributes, in nanoseconds since 1970.
    pub changed: (i128, i128),
    /// Whether an equal stamp implies equal content.
    pub is_sure: bool,
}

impl FileStamp {
    /// The stamp of a file on this machine; `now` is the time right before its metadata was read.
    pub(crate) fn of(metadata: &Metadata, now: SystemTime) -> Self {
        let nanoseconds =
            |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let changed = (
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        );
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A time in the future is not settled either.
        let settled = now.saturating_sub(SETTLED).as_nanos().cast_signed();
        Self {
            file: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            changed,
            is_sure: changed.0.max(changed.1) < settled,
        }
    }

    /// Whether a later stamp shows another file or a change.
    #[must_use]
    pub fn differs(&self, later: &Self) -> bool {
        (self.file, self.length, self.changed) != (later.file, later.length, later.changed)
    }
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Copy)]
pub struct FileSnapshot<'a> {
    /// Taken before reading.
    pub stamp: &'a FileStamp,
    /// Everything that was read.
    pub content: &'a [u8],
}
