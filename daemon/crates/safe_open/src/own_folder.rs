//! Checks that the agent directory belongs to its user alone: agentd trusts what is in it.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Why the agent directory is not used. Displayed as a sentence without its full stop, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderFault {
    /// It belongs to another user.
    #[error(
        "the agent directory {} belongs to another user (uid {uid}; this program runs as uid {own}): set HOME to the home \
         directory of the user that it runs as, or AGENTD_DIR to a folder of that user",
        path.display()
    )]
    Foreign {
        /// The agent directory.
        path: PathBuf,
        /// Its owner's number.
        uid: u32,
        /// This user's number.
        own: u32,
    },
    /// It is in a folder of another user, who can replace it.
    #[error(
        "the agent directory {} is, or would be, in a folder of another user, {} (uid {uid}; this program runs as uid {own}): \
         set HOME to the home directory of the user that it runs as, or AGENTD_DIR to a folder in one of that user",
        path.display(), folder.display()
    )]
    InForeign {
        /// The agent directory.
        path: PathBuf,
        /// That folder.
        folder: PathBuf,
        /// The folder's owner's number.
        uid: u32,
        /// This user's number.
        own: u32,
    },
    /// Other users can change what is in it.
    #[error(
        "other users can change the agent directory {} (mode {mode:04o}): look whether what is in it is yours, then \
         `chmod go-w {}`; or set AGENTD_DIR to another folder",
        path.display(), path.display()
    )]
    Open {
        /// The agent directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Checks that the agent directory, which need not exist yet, is this user's and writable by nobody else: keys are read
/// from it, and commands that it names are run. A folder that cannot be examined passes; opening it reports the error.
/// Blocks for two file system calls.
///
/// The group with the user's own number may write to it: systems with private groups create folders that way.
///
/// # Errors
/// [`FolderFault`].
pub fn check_own_folder(path: &Path) -> Result<(), FolderFault> {
    let own = rustix::process::geteuid().as_raw();
    if let Ok(about) = path.metadata().as_ref() {
        if about.uid() != own {
            return Err(FolderFault::Foreign { path: path.to_owned(), uid: about.uid(), own });
        }
        let others = if about.gid() == own { 0o002 } else { 0o022 };
        if about.mode() & others != 0 {
            return Err(FolderFault::Open { path: path.to_owned(), mode: about.mode() & 0o7777 });
        }
    }
    let around = path.ancestors().skip(1).find_map(|folder| Some((folder, folder.metadata().ok()?.uid())));
    match around {
        Some((folder, uid)) if uid != own && uid != 0 => {
            let (path, folder) = (path.to_owned(), folder.to_owned());
            Err(FolderFault::InForeign { path, folder, uid, own })
        }
        _ => Ok(()),
    }
}

/// The nearest parent folder in which any user can replace entries.
#[must_use]
pub fn open_folder_around(path: &Path) -> Option<&Path> {
    /// `/tmp` has this bit: only the owner of an entry may remove it.
    const STICKY: u32 = 0o1000;
    let is_open = |mode: u32| mode & 0o002 != 0 && mode & STICKY == 0;
    path.ancestors().skip(1).find(|folder| folder.metadata().is_ok_and(|about| is_open(about.mode())))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, chown},
    };

    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_change_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        assert_eq!(check_own_folder(&path), Ok(()));
        fs::create_dir_all(&path).unwrap();
        for mode in [0o700, 0o755, 0o711] {
            with_mode(&path, mode);
            assert_eq!(check_own_folder(&path), Ok(()));
        }
        for mode in [0o777, 0o707, 0o1777] {
            with_mode(&path, mode);
            let fault = check_own_folder(&path).unwrap_err().to_string();
            assert!(fault.contains(&format!("mode {mode:04o}")) && fault.contains("chmod go-w"), "{fault}");
        }
        with_mode(&path, 0o700);
        assert_eq!(open_folder_around(&path), None);
        with_mode(&root.path().join("a"), 0o777);
        assert_eq!(open_folder_around(&path), Some(root.path().join("a").as_path()));
        with_mode(&root.path().join("a"), 0o1777);
        assert_eq!(open_folder_around(&path), None);
    }

    #[test]
    fn what_is_another_users_is_not_used() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("home/agent");
        fs::create_dir_all(&path).unwrap();
        with_mode(&path, 0o770);
        assert_eq!(check_own_folder(&path), Ok(()));
        chown(&path, None, Some(65534)).unwrap();
        assert!(matches!(check_own_folder(&path), Err(FolderFault::Open { mode: 0o770, .. })));
        chown(&path, Some(65534), None).unwrap();
        assert!(matches!(check_own_folder(&path), Err(FolderFault::Foreign { uid: 65534, own: 0, .. })));
        fs::remove_dir(&path).unwrap();
        assert_eq!(check_own_folder(&path), Ok(()));
        chown(root.path().join("home"), Some(65534), None).unwrap();
        for path in [path.clone(), path.join("deeper")] {
            assert!(matches!(check_own_folder(&path), Err(FolderFault::InForeign { uid: 65534, .. })));
        }
    }
}
