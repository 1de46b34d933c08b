//! Opens files that others may have made: a stranger's project, another user of the machine, a command of a model.
//!
//! Such a file may be a link to a secret or to `/dev/zero`, a named pipe that nobody writes to, longer than all memory,
//! or made by the kernel from the secrets of this process (`/proc/self/environ`). [`OpenRules`] say what is acceptable.
//! A file is checked after it is open, so nothing can be swapped in between, and no call waits for another process.
//!
//! The checks cost three system calls per file besides opening it.

mod error;
mod kernel;
mod links;
mod own_folder;

use std::{
    fs::{File, Metadata},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::fs::{Mode, OFlags};

pub use error::{FileKind, OpenError, OpenProblem};
pub use kernel::{is_of_kernel, is_of_processes};
pub use links::LinkPolicy;
pub use own_folder::{FolderFault, check_own_folder, open_folder_around};

/// Which owners of files are acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedOwner {
    /// Any user.
    Anybody,
    /// This user and root.
    Own,
    /// This user, root, and one more: the owner of the project, where root works on a user's files.
    OwnOr(u32),
}

impl AcceptedOwner {
    /// Whether a file of that user is acceptable.
    #[must_use]
    pub fn accepts(self, uid: u32) -> bool {
        let is_own = uid == 0 || uid == rustix::process::geteuid().as_raw();
        match self {
            Self::Anybody => true,
            Self::Own => is_own,
            Self::OwnOr(other) => is_own || uid == other,
        }
    }
}

/// What is acceptable. Only regular files are, and none in `/proc`.
#[derive(Debug, Clone, Copy)]
pub struct OpenRules<'a> {
    links: LinkPolicy<'a>,
    owner: AcceptedOwner,
    max_bytes: u64,
}

impl<'a> OpenRules<'a> {
    /// Follows links as given; accepts files of this user and of root, of any length.
    #[must_use]
    pub const fn new(links: LinkPolicy<'a>) -> Self {
        Self { links, owner: AcceptedOwner::Own, max_bytes: u64::MAX }
    }

    /// Accepts files of these users.
    #[must_use]
    pub const fn owner(mut self, owner: AcceptedOwner) -> Self {
        self.owner = owner;
        self
    }

    /// Accepts files of at most `max_bytes`. [`Self::read`] also stops there when a file grows while it is read.
    #[must_use]
    pub const fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Opens a file for reading. Blocks on the file system only, never on another process.
    ///
    /// # Errors
    /// [`OpenError`]: the system's error, or what is not acceptable.
    pub fn open(&self, path: &Path) -> Result<File, OpenError> {
        self.open_with(path, Access::Read)
    }

    /// [`Self::open`] for many files: asks once per file system, not once per file, whether it is `/proc`. Also returns the length in bytes
    /// that the file had.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_one_of_many(
        &self,
        path: &Path,
        seen: &mut SeenFileSystems,
    ) -> Result<(File, u64), OpenError> {
        let failed = |problem| OpenError::new(path, problem);
        let file =
            links::open(path, self.links, Access::Read.flags(), Access::Read.mode()).map_err(failed)?;
        let length = self.check(&file, seen).map_err(failed)?;
        Ok((file, length))
    }

    /// Opens an existing file for reading and writing, without changing it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_change(&self, path: &Path) -> Result<File, OpenError> {
        self.open_with(path, Access::Change)
    }

    /// Opens an existing file for reading, and for writing at its end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_extend(&self, path: &Path) -> Result<File, OpenError> {
        self.open_with(path, Access::Extend)
    }

    /// Opens a file for writing at its end. Creates an empty file, private to this user, where there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_append(&self, path: &Path) -> Result<File, OpenError> {
        self.open_with(path, Access::Append)
    }

    /// Opens a file for reading and writing, without truncating it. Creates an empty file, private to this user, where
    /// there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_or_create(&self, path: &Path) -> Result<File, OpenError> {
        self.open_with(path, Access::Create)
    }

    /// The content of a file; `None` when nothing is at that path.
    ///
    /// # Errors
    /// As [`Self::open`]; [`OpenProblem::TooLong`] also for a file that grew while it was read.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, OpenError> {
        let file = match self.open(path) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        self.read_open(&file, path).map(Some)
    }

    /// The content of a file that must exist.
    ///
    /// # Errors
    /// As [`Self::open`]; [`OpenProblem::TooLong`] also for a file that grew while it was read.
    pub fn read_present(&self, path: &Path) -> Result<Vec<u8>, OpenError> {
        self.read_open(&self.open(path)?, path)
    }

    /// The rest of an opened file; `path` names it in errors.
    ///
    /// # Errors
    /// [`OpenProblem::TooLong`] for a file that grew, and the system's.
    pub fn read_open(&self, file: &File, path: &Path) -> Result<Vec<u8>, OpenError> {
        let failed = |problem| OpenError::new(path, problem);
        let mut content = Vec::new();
        let limit = self.max_bytes.saturating_add(1);
        file.take(limit).read_to_end(&mut content).map_err(|error| failed(OpenProblem::System(error)))?;
        if content.len() as u64 > self.max_bytes {
            let length = file.metadata().map_or(content.len() as u64, |about| about.len());
            return Err(failed(OpenProblem::TooLong { length, limit: self.max_bytes }));
        }
        Ok(content)
    }

    fn open_with(&self, path: &Path, access: Access) -> Result<File, OpenError> {
        let failed = |problem| OpenError::new(path, problem);
        let file = links::open(path, self.links, access.flags(), access.mode()).map_err(failed)?;
        self.check(&file, &mut SeenFileSystems::default()).map_err(failed)?;
        Ok(file)
    }

    /// Checks an open file. Returns its length in bytes.
    fn check(&self, file: &File, seen: &mut SeenFileSystems) -> Result<u64, OpenProblem> {
        let about = file.metadata().map_err(OpenProblem::System)?;
        let kind = FileKind::from(about.file_type());
        if kind != FileKind::File {
            return Err(OpenProblem::NotAFile(kind));
        }
        if !self.owner.accepts(about.uid()) {
            return Err(OpenProblem::Foreign { uid: about.uid() });
        }
        if about.len() > self.max_bytes {
            return Err(OpenProblem::TooLong { length: about.len(), limit: self.max_bytes });
        }
        if seen.is_of_processes(file, &about).map_err(OpenProblem::System)? {
            return Err(OpenProblem::OfProcesses);
        }
        Ok(about.len())
    }
}

/// The file system of the last file, for [`OpenRules::open_one_of_many`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SeenFileSystems {
    /// A device, and whether its files are those of `/proc`.
    last: Option<(u64, bool)>,
}

impl SeenFileSystems {
    fn is_of_processes(&mut self, file: &File, about: &Metadata) -> std::io::Result<bool> {
        match self.last {
            Some((device, is_of_processes)) if device == about.dev() => Ok(is_of_processes),
            _ => {
                let is_of_processes = is_of_processes(file)?;
                self.last = Some((about.dev(), is_of_processes));
                Ok(is_of_processes)
            }
        }
    }
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
enum Access {
    Read,
    Change,
    Extend,
    Append,
    Create,
}

impl Access {
    /// Never waits for the other end of a pipe, and never makes a terminal the controlling one.
    fn flags(self) -> OFlags {
        let common = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        common
            | match self {
                Self::Read => OFlags::RDONLY,
                Self::Change => OFlags::RDWR,
                Self::Extend => OFlags::RDWR | OFlags::APPEND,
                Self::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
                Self::Create => OFlags::RDWR | OFlags::CREATE,
            }
    }

    fn mode(self) -> Mode {
        match self {
            Self::Append | Self::Create => Mode::RUSR | Mode::WUSR,
            Self::Read | Self::Change | Self::Extend => Mode::empty(),
        }
    }
}

/// The owner of the folder that a path leads to, for [`AcceptedOwner::OwnOr`].
///
/// # Errors
/// The system's.
pub fn owner_of(folder: &Path) -> std::io::Result<u32> {
    Ok(folder.metadata()?.uid())
}

#[cfg(test)]
mod tests;
