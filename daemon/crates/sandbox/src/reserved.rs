//! Folders for protected paths that do not exist yet.
//!
//! A path can only be protected by a mount where it exists. So while sessions with a sandbox work in a folder, the missing ones are
//! there as empty folders. Each session holds a shared lock on them; the last one to end removes those that are still empty.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};

use crate::policy::SandboxPolicy;

/// The name of a protected path of git, which only belongs into a git folder that exists.
const GIT: &str = ".git";

/// The folders that were made. Dropping this removes them, if they are empty and nobody else needs them. Blocks shortly.
#[derive(Debug, Default)]
pub struct ReservedPaths(Vec<(PathBuf, OwnedFd)>);

impl ReservedPaths {
    /// Makes the missing protected folders of the writable folders. What cannot be made is left: then nobody else of this user can
    /// make it either. Blocks.
    #[must_use]
    pub fn make(policy: &SandboxPolicy) -> Self {
        let is_wanted = |path: &PathBuf| {
            let in_git = path.parent().is_some_and(|parent| parent.ends_with(GIT));
            // A file; git works without it, and makes one when it makes a folder.
            !path.ends_with(".git/config") && (!in_git || path.parent().is_some_and(Path::is_dir))
        };
        Self(policy.protected().filter(is_wanted).filter_map(reserve).collect())
    }
}

/// Makes a folder, or joins those who made it; `None` for a folder of the user.
fn reserve(path: PathBuf) -> Option<(PathBuf, OwnedFd)> {
    let is_made = fs::create_dir(&path).is_ok();
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let folder = open(&path, flags, Mode::empty()).ok()?;
    // Only such folders are ever locked.
    let is_reserved = || flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    if !is_made && !is_reserved() {
        return None;
    }
    flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
    Some((path, folder))
}

impl Drop for ReservedPaths {
    fn drop(&mut self) {
        for (path, folder) in &self.0 {
            // Removing a folder would take the mount over it away from the commands of another session.
            // Otherwise another session needs it, or the file system has no locks.
            if flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = fs::remove_dir(path);
            }
        }
    }
}
