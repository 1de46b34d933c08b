//! Which folder a path leads to, so that another one in its place is told from it.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// The folder of a project, and what makes it a repository: when they were made, or their numbers where the file system does
/// not say when.
///
/// The time alone is compared where there is one: a number is given again to the next folder, and some file systems (FAT, FUSE)
/// give others with every mount. The device is not compared: its number is another one after a restart of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderIdentity {
    pub(super) folder: String,
    /// Of `.git`, a folder or a file; `None` where there is none.
    pub(super) repository: Option<String>,
}

impl FolderIdentity {
    /// What is at that path now; `None` when nothing is.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let repository = folder.join(".git").symlink_metadata().ok();
        Some(Self { folder: mark(&folder.metadata().ok()?), repository: repository.as_ref().map(mark) })
    }

    /// Whether this is the folder that was there then. One that has become a repository since is the same.
    pub(super) fn is_that_of(&self, then: &Self) -> bool {
        self.folder == then.folder && (then.repository.is_none() || self.repository == then.repository)
    }
}

fn mark(about: &Metadata) -> String {
    match about.created() {
        Ok(made) if made > UNIX_EPOCH => {
            let since = made.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("made {}.{:09}", since.as_secs(), since.subsec_nanos())
        }
        _ => format!("number {}", about.ino()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_folder_in_the_place_is_told_from_the_first() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("p");
        assert_eq!(FolderIdentity::of(&path), None);
        fs::create_dir(&path).unwrap();
        let first = FolderIdentity::of(&path).unwrap();
        fs::write(path.join("file"), "").unwrap();
        assert!(FolderIdentity::of(&path).unwrap().is_that_of(&first));
        fs::create_dir(path.join(".git")).unwrap();
        let repository = FolderIdentity::of(&path).unwrap();
        assert!(repository.is_that_of(&first) && !first.is_that_of(&repository));
        // Another repository in the same folder.
        fs::rename(path.join(".git"), root.path().join("git")).unwrap();
        fs::create_dir(path.join(".git")).unwrap();
        assert!(!FolderIdentity::of(&path).unwrap().is_that_of(&repository));
        // Moved away and back, it is the one that it was.
        let away = root.path().join("away");
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!FolderIdentity::of(&path).unwrap().is_that_of(&first));
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        assert!(FolderIdentity::of(&path).unwrap().is_that_of(&first));
    }
}
