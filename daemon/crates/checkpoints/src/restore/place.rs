//! One path of a restoring, changed in its open folder.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::fs::fchown,
    },
    path::{Component, Path},
};

use agentd_files::xattr;
use rustix::{
    fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT},
    io::Errno,
};

use crate::{
    capture::{Stat, identify},
    state::{Change, FileState, ObjectId},
    store::Store,
};

/// Why a folder stays.
pub(super) const NOT_EMPTY: &str = "the folder has files that are not the agent's, or are not kept";

/// The open folder of a path, and its name in there.
pub(super) struct Place<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
    path: &'a Path,
    temporary: &'a str,
}

impl<'a> Place<'a> {
    /// Opens the folder of an absolute path, following no link.
    pub(super) fn open(path: &'a Path, temporary: &'a str) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // Folders that may be entered and not read, as `/home` of some systems, are no hindrance.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open("/", flags, Mode::empty())?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            if let Component::Normal(name) = part {
                folder =
                    rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(|error| match error {
                        Errno::NOTDIR | Errno::LOOP => io::Error::other("a folder above it is none by now"),
                        Errno::NOENT => io::Error::other("a folder above it is gone by now"),
                        error => error.into(),
                    })?;
            }
        }
        Ok(Self { folder, name, path, temporary })
    }

    /// Checks that what is there is what the plan saw.
    fn check(&self, step: &Change) -> io::Result<bool> {
        let now = identify(self.path, [&step.before, &step.after]);
        if now.is_same(&step.after) {
            return Ok(false);
        }
        if now.is_same(&step.before)
            || matches!(step.before, FileState::Folder { .. }) && matches!(now, FileState::Folder { .. })
        {
            return Ok(true);
        }
        Err(io::Error::other("it was changed since"))
    }

    pub(super) fn remove(&self, step: &Change) -> io::Result<()> {
        if !self.check(step)? {
            return Ok(());
        }
        let flags = match step.before {
            FileState::Folder { .. } => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(&self.folder, self.name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(io::Error::other(NOT_EMPTY)),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn make_folder(&self, mode: u32) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, self.name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => self.set_mode(mode),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the mode of a folder.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, self.name, flags, Mode::empty()) {
            Ok(folder) => Ok(rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?),
            // A folder that nobody may read.
            Err(Errno::ACCESS) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let folder = rustix::fs::openat(&self.folder, self.name, flags, Mode::empty())?;
                // Such a descriptor takes no mode, but leads to this very folder, whatever has its name by now.
                let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
                Ok(rustix::fs::chmod(itself, Mode::from_raw_mode(mode))?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a file or a link in place, in one step.
    pub(super) fn put(&self, step: &Change, store: &Store) -> io::Result<()> {
        // The folder or file of another kind is gone by now.
        let is_gone = Stat::at(self.path)?.is_none();
        if !is_gone && !self.check(step)? {
            return Ok(());
        }
        let made = match &step.after {
            FileState::Link(target) => {
                rustix::fs::symlinkat(target.as_ref(), &self.folder, self.temporary).map_err(io::Error::from)
            }
            FileState::File { id, mode, mtime, .. } => self.write(*id, *mode, *mtime, store),
            _ => return Err(io::Error::other("its content is not kept")),
        };
        let put = made
            .and_then(|()| Ok(rustix::fs::renameat(&self.folder, self.temporary, &self.folder, self.name)?));
        if put.is_err() {
            // The first error says what is wrong.
            let _ = rustix::fs::unlinkat(&self.folder, self.temporary, AtFlags::empty());
        }
        put
    }

    fn write(&self, id: ObjectId, mode: u32, mtime: i64, store: &Store) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, self.temporary, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        store.read(id, &mut file)?;
        let mode = if self.pass_on(&file)? { mode } else { mode & 0o1777 };
        rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode))?;
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec {
                tv_sec: mtime.div_euclid(1_000_000_000),
                tv_nsec: mtime.rem_euclid(1_000_000_000) as _,
            },
        };
        Ok(rustix::fs::futimens(&file, &times)?)
    }

    /// Gives a new file the owner and the attributes of the file that it replaces; where there is none, the owner of the folder.
    /// Returns whether the owner is that one: else the file must have no setuid bit.
    fn pass_on(&self, new: &File) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let old = rustix::fs::openat(&self.folder, self.name, flags, Mode::empty()).map(File::from);
        let old = old.ok().filter(|old| old.metadata().is_ok_and(|about| about.is_file()));
        let wanted = match &old {
            Some(old) => rustix::fs::fstat(old)?,
            None => rustix::fs::fstat(&self.folder)?,
        };
        let about = rustix::fs::fstat(new)?;
        // A file that is there with another owner or without an attribute is better than none.
        let has_owner = (about.st_uid, about.st_gid) == (wanted.st_uid, wanted.st_gid)
            || fchown(new, Some(wanted.st_uid), Some(wanted.st_gid)).is_ok();
        if let Some(old) = &old
            && !xattr::copy(old, new)
        {
            tracing::warn!(path = %self.path.display(), "a restored file has lost extended attributes");
        }
        // In the folder of somebody else a new file is the user's own, with a mode of its own.
        Ok(has_owner || old.is_none())
    }
}
