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
    fs::{FlockOperation, Mode, OFlags, XattrFlags, fgetxattr, flock, fsetxattr, open},
    io::Errno,
};

use crate::policy::SandboxPolicy;

/// The name of a protected path of git, which only belongs into a git folder that exists.
const GIT: &str = ".git";

/// The attribute of folders that were made: a daemon that is killed leaves them, and the next session takes them for its own.
const MARK: &str = "user.agentd.reserved";

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
    if is_made {
        // Where the file system has no attributes, a folder that a killed daemon left stays.
        let _ = fsetxattr(&folder, MARK, b"1", XattrFlags::empty());
    }
    // Only such folders are ever locked.
    let is_reserved = || flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    let is_marked = || fgetxattr(&folder, MARK, &mut [0; 1][..]).is_ok();
    if !is_made && !is_marked() && !is_reserved() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(root: &Path) -> SandboxPolicy {
        SandboxPolicy { writable: vec![root.to_owned()], ..SandboxPolicy::default() }
    }

    #[test]
    fn folders_go_with_the_last_session_and_those_of_the_user_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".pi")).unwrap();
        let made = folder.path().join(".agentd");
        let (first, second) =
            (ReservedPaths::make(&policy(folder.path())), ReservedPaths::make(&policy(folder.path())));
        drop(first);
        assert!(made.is_dir());
        drop(second);
        assert!(!made.exists() && folder.path().join(".pi").is_dir());
    }

    #[test]
    fn a_folder_that_a_killed_daemon_left_goes_with_the_next_session() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join(".agentd");
        let mut killed = ReservedPaths::make(&policy(folder.path()));
        // The locks end, and nothing is removed.
        killed.0.clear();
        drop(killed);
        let about = fs::File::open(&made).unwrap();
        if fgetxattr(&about, MARK, &mut [0; 1][..]).is_err() {
            return;
        }
        drop(ReservedPaths::make(&policy(folder.path())));
        assert!(!made.exists());
    }
}
