//! What the tools ask of files.

use std::{
    ffi::OsString,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::WriteError;

/// A place with files. Shared by the calls of a session's tools.
pub trait FileHost: Send + Sync {
    /// The files as one call sees them. What it does ends soon after `cancel` fires, with any error.
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem>;

    /// What `~` means there; `None` leaves that to the session's own environment.
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Files and folders. Paths are absolute and without `.` and `..`.
///
/// Everything here blocks, and belongs on a blocking thread. Errors carry the system's own codes (`raw_os_error`),
/// whatever the place is, so that messages read the same; or an [`Unreachable`](super::Unreachable).
pub trait FileSystem: Send + Sync {
    /// Opens what is at a path for reading. Never waits, also where that is a pipe.
    ///
    /// # Errors
    /// The system's. A folder is no error: its kind says what it is.
    fn open(&self, path: &Path) -> io::Result<OpenFile>;

    /// What is at a path, symbolic links followed.
    ///
    /// # Errors
    /// The system's.
    fn about(&self, path: &Path) -> io::Result<About>;

    /// Asks whether the file at a path may be read and written.
    ///
    /// # Errors
    /// The system's: why not.
    fn check_change(&self, path: &Path) -> io::Result<()>;

    /// Resolves every symbolic link of a path. Of one that does not exist, what exists is resolved and the rest kept: two
    /// names of one file to come are the same file. A link to a missing file leads to that file.
    ///
    /// # Errors
    /// What the system says about a folder on the way, such as a circle of links or a missing right; a missing file or
    /// folder is no error.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// A folder as a walk below it names it: without links, on this machine, where rules of ignore files above it count too.
    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        folder.to_owned()
    }

    /// Whether tools may write the file at a path at all, whatever the system says of it. What does not depend on the path is
    /// not asked here.
    ///
    /// # Errors
    /// [`WriteError::Guarded`], and [`WriteError::System`] where that cannot be told.
    fn may_write(&self, _path: &Path) -> Result<(), WriteError> {
        Ok(())
    }

    /// Makes a folder and those above it that are missing.
    ///
    /// # Errors
    /// The system's.
    fn create_folders(&self, path: &Path) -> io::Result<()>;

    /// Makes `content` the content of the file at a path whose folder exists, in one step: whoever looks sees the old
    /// content or the new. Symbolic links stay, and the file that they lead to is replaced; it keeps its rights.
    ///
    /// With `before`, only while the file is as it was then.
    ///
    /// # Errors
    /// [`WriteError`]; [`WriteError::Changed`] only with `before`.
    fn replace(&self, path: &Path, content: &[u8], before: Option<&Before<'_>>) -> Result<(), WriteError>;

    /// What is in each of some folders, in any order, `.` and `..` not among it. Several at once are one question to a
    /// place that is far away; more than [`FileSystem::batch`] need not be asked for.
    ///
    /// # Errors
    /// The outer one: nothing can be asked. The inner ones: of one folder.
    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<Listed>>>>;

    /// Reads files one after the other, in their order, and hands each to `take`, which says whether to go on; what
    /// `take` leaves unread is passed over. Only regular files are read: others are an error of theirs.
    /// Opens each file by itself; a place that is far away knows better.
    ///
    /// # Errors
    /// Nothing can be asked, or the place was lost on the way. Errors of one file go to `take`.
    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        for (number, path) in files.iter().enumerate() {
            let wants_more = match self.open(path) {
                Ok(OpenFile { about: About { kind: FileKind::File, .. }, mut content, .. }) => {
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

    /// Whether these are the files of this machine, so that programs and libraries can have them by their paths.
    fn is_local(&self) -> bool {
        false
    }
}

/// Takes a file by its number; false: no more are wanted.
pub type TakeFile<'a> = &'a mut dyn FnMut(usize, io::Result<&mut dyn Read>) -> bool;

/// Something that was opened for reading.
pub struct OpenFile {
    /// What it is.
    pub about: About,
    /// What tells this content from a later one.
    pub stamp: Stamp,
    /// How much of it is safe to read: some files have no end.
    pub limit: u64,
    /// The content of a regular file; of others, whatever reading them gives.
    pub content: Box<dyn Read + Send>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its kind.
    pub kind: FileKind,
    /// Bytes of a regular file; anything for others.
    pub length: u64,
}

/// The kinds of what is in folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link; only in lists.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or what the system does not say.
    Device,
    /// A file that shows the state of processes, those of this program too; only of what was opened.
    OfProcesses,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: OsString,
    /// What it is itself.
    pub kind: FileKind,
    /// What it leads to, links followed; `None`: nowhere.
    pub target: Option<FileKind>,
}

/// What tells the content of a file from a later one.
///
/// The system notes changes by a clock that ticks some hundred times a second at best, so two changes may look like one.
/// A stamp that was taken long enough after the file's last change is sure: a file with the same one has the same
/// content. For others, the content itself decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file: device and number.
    pub file: (u64, u64),
    /// Bytes.
    pub length: u64,
    /// When its content and its attributes were changed, in nanoseconds since 1970.
    pub changed: (i128, i128),
    /// Whether a file with this stamp has this content for sure.
    pub is_sure: bool,
}

impl Stamp {
    /// Whether a later stamp tells of another file or of a change.
    #[must_use]
    pub fn differs(&self, later: &Self) -> bool {
        (self.file, self.length, self.changed) != (later.file, later.length, later.changed)
    }
}

/// A file as it was read.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// Taken before the reading.
    pub stamp: &'a Stamp,
    /// All that was read.
    pub content: &'a [u8],
}
