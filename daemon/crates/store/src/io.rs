//! The one layer between session files and the system, so that tests can make it fail.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::Path,
};

use agentd_files::fail_point::{self, Point};
use agentd_protocol::entry::MAX_SESSION_FILE_BYTES;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};

use crate::StoreError;

/// Session files are named by the user, so links and files of other users are accepted.
pub(crate) const SESSION: OpenRules<'_> =
    OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_SESSION_FILE_BYTES);

/// Nobody names an intent log: it counts where it is this user's own.
pub(crate) const INTENT_LOG: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused);

/// A note has a path in it.
pub(crate) const NOTE: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused).max_bytes(64 << 10);

/// Opens a session file for reading, without waiting for a pipe's writer.
///
/// # Errors
/// [`StoreError::NotAFile`], and [`StoreError::Io`], also for a file that is too long.
pub(crate) fn open_to_read(path: &Path) -> Result<File, StoreError> {
    SESSION.open(path).map_err(|error| match error.into_problem() {
        OpenProblem::NotAFile(_) => StoreError::NotAFile { path: path.to_owned() },
        problem => StoreError::io("open the session file", path)(problem.into()),
    })
}

/// [`open_to_read`] for callers that name the file in their own errors.
///
/// # Errors
/// The system's, and the violated rule.
pub(crate) fn open_named(path: &Path) -> io::Result<File> {
    SESSION.open(path).map_err(|error| error.into_problem().into())
}

/// The moment at which an entry counts as saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Once the system has it: it survives a kill of this process, not a loss of power.
    #[default]
    Os,
    /// Once the disk has it: it survives a loss of power.
    Fsync,
}

/// The file system calls of the store. Blocks.
pub(crate) trait Io: Send + Sync {
    /// Opens a file to be read and appended to; to be read alone where this user may not write to it.
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileIo>>;
    /// Makes a file, private to the user, to be read and appended to; fails if it is there.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn FileIo>>;
    /// Opens an intent log to be read.
    fn open_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.open(path)
    }
    /// Makes an intent log, private to the user, to be appended to; fails if it is there.
    fn create_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.create_new(path)
    }
    /// Removes an intent log.
    fn remove_intent_log(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }
    /// Makes a folder and those above it, private to the user; one that is there is left as it is.
    fn create_dirs(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Gives a file a second name, which must be free.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;
    /// Puts a file in the place of another, in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Brings a folder's list of names to the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The facts about the file at a path; links are followed.
    fn stat(&self, path: &Path) -> io::Result<FileState>;
}

/// An open session file.
pub(crate) trait FileIo: Read + Send {
    /// Appends as many of the bytes as it can, in one system call.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts the file.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Brings the file's content to the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// The file as it is now.
    fn state(&self) -> io::Result<FileState>;
    /// Gives the file the permissions of another.
    fn copy_mode(&self, of: &Path) -> io::Result<()>;
    /// Takes the file for this handle alone; false when another handle has it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Returns whether the file was opened to be written to.
    fn is_writable(&self) -> bool {
        true
    }
    /// Another handle, to read the file at any place; `None` where there is none.
    fn reader(&self) -> Option<File> {
        None
    }
}

/// Facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    /// In bytes.
    pub(crate) len: u64,
    /// A regular file, no folder and no device.
    pub(crate) is_file: bool,
    /// True if the file has a name, or the system does not tell.
    pub(crate) has_name: bool,
    /// The device and number of the file, where the system tells them.
    pub(crate) identity: Option<(u64, u64)>,
}

/// The real file system.
pub(crate) struct Disk;

impl Io for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        fail_point::call(Point::StoreOpen)?;
        let opened = match SESSION.open_to_extend(path) {
            Ok(file) => Ok(DiskFile { file, is_writable: true }),
            Err(error) if error.problem().is_refusal() => {
                SESSION.open(path).map(|file| DiskFile { file, is_writable: false })
            }
            Err(error) => Err(error),
        };
        opened.map(|file| Box::new(file) as Box<dyn FileIo>).map_err(|error| error.into_problem().into())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        private_file(&mut options);
        fail_point::call(Point::StoreCreate)?;
        let file = options.open(path)?;
        fail_point::hit(Point::StoreCreated);
        Ok(Box::new(DiskFile { file, is_writable: true }))
    }

    fn open_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        Ok(Box::new(IntentLogFile(
            INTENT_LOG.open(path).map_err(|error| io::Error::from(error.into_problem()))?,
        )))
    }

    fn create_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        private_file(&mut options);
        Ok(Box::new(IntentLogFile(options.open(path)?)))
    }

    fn remove_intent_log(&self, path: &Path) -> io::Result<()> {
        fail_point::call(Point::IntentLogClear)?;
        fs::remove_file(path)
    }

    fn create_dirs(&self, path: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        private_dir(&mut builder);
        builder.create(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fail_point::call(Point::StoreRemove)?;
        fs::remove_file(path)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        fail_point::call(Point::StoreLink)?;
        fs::hard_link(file, name)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fail_point::call(Point::StoreRename)?;
        fs::rename(from, to)?;
        fail_point::hit(Point::StoreRenamed);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // Folders cannot be opened as files everywhere; where they cannot, names need no such step.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }

    fn stat(&self, path: &Path) -> io::Result<FileState> {
        fs::metadata(path).map(|metadata| state(&metadata))
    }
}

struct DiskFile {
    file: File,
    is_writable: bool,
}

impl Read for DiskFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Drop for DiskFile {
    /// Lets go of the lock at once. Closing alone would not: a child process that was forked a moment ago has a copy of
    /// the descriptor until it runs its own program, and with it the lock.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock()
            && error.kind() != io::ErrorKind::Unsupported
        {
            tracing::warn!(%error, "a session file could not be unlocked; it is free once all copies of it are closed");
        }
    }
}

impl FileIo for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = fail_point::write(Point::StoreAppend, bytes, |bytes| self.file.write(bytes))?;
        fail_point::hit(Point::StoreAppended);
        Ok(written)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        fail_point::call(Point::StoreCut)?;
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        fail_point::call(Point::StoreSync)?;
        self.file.sync_data()
    }

    fn state(&self) -> io::Result<FileState> {
        self.file.metadata().map(|metadata| state(&metadata))
    }

    fn copy_mode(&self, of: &Path) -> io::Result<()> {
        self.file.set_permissions(fs::metadata(of)?.permissions())
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            // A file system without locks: the session is as safe as pi's, which takes none.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!(%error, "the file system has no locks: nothing keeps other programs from this session");
                Ok(true)
            }
            // Some file systems lock only what can be written to. Nothing is written to this one.
            Err(TryLockError::Error(error)) if !self.is_writable => {
                tracing::debug!(%error, "a session file that can only be read is not locked");
                Ok(true)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_writable(&self) -> bool {
        self.is_writable
    }

    fn reader(&self) -> Option<File> {
        self.file.try_clone().ok()
    }
}

/// An intent log. It is never locked, since the session file is, and its fail points lie in the intent log's own code.
struct IntentLogFile(File);

impl Read for IntentLogFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl FileIo for IntentLogFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn state(&self) -> io::Result<FileState> {
        self.0.metadata().map(|metadata| state(&metadata))
    }

    fn copy_mode(&self, of: &Path) -> io::Result<()> {
        self.0.set_permissions(fs::metadata(of)?.permissions())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(unix)]
fn state(metadata: &fs::Metadata) -> FileState {
    use std::os::unix::fs::MetadataExt;
    FileState {
        len: metadata.len(),
        is_file: metadata.is_file(),
        has_name: metadata.nlink() > 0,
        identity: Some((metadata.dev(), metadata.ino())),
    }
}

#[cfg(not(unix))]
fn state(metadata: &fs::Metadata) -> FileState {
    FileState { len: metadata.len(), is_file: metadata.is_file(), has_name: true, identity: None }
}

#[cfg(unix)]
fn private_file(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn private_file(_options: &mut OpenOptions) {}

#[cfg(unix)]
fn private_dir(builder: &mut DirBuilder) {
    use std::os::unix::fs::DirBuilderExt;
    builder.mode(0o700);
}

#[cfg(not(unix))]
fn private_dir(_builder: &mut DirBuilder) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "").unwrap();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let held = DiskFile { file, is_writable: true };
        assert!(held.try_lock().unwrap());
        // A fork leaves such a copy in the child until it executes a program.
        let copy = held.file.try_clone().unwrap();
        let next = Disk.open(&path).unwrap();
        assert!(!next.try_lock().unwrap());
        drop(held);
        assert!(next.try_lock().unwrap(), "the lock goes with its owner");
        drop(copy);
    }
}
