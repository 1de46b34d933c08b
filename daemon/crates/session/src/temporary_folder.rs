//! The folder for temporary files of a sandbox.

use std::{
    fs::{self, DirEntry, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tempfile::TempDir;

/// How the names of these folders begin.
const PREFIX: &str = "agentd-sandbox-";

/// A folder that is younger than this may not be locked yet.
const NEW: Duration = Duration::from_secs(60);

/// A folder that is removed when this is dropped, or, after a daemon that was killed, when the next one is made.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Holds a lock for as long as the folder is needed.
    _lock: File,
}

impl TemporaryFolder {
    /// Makes a folder, and removes those that killed daemons of the same user left. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn make(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = opened(folder.path())?;
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn opened(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(open(folder, flags, Mode::empty())?.into())
}

/// Removes the folders that nobody holds. What cannot be removed is left: the folder for temporary files is shared with others.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if let Err(error) = remove_if_abandoned(&entry) {
            tracing::debug!(path = %entry.path().display(), %error, "a temporary folder is left");
        }
    }
}

fn remove_if_abandoned(entry: &DirEntry) -> io::Result<()> {
    let about = entry.metadata()?;
    let is_own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    let is_new = about.modified()?.elapsed().is_ok_and(|age| age < NEW);
    if !is_own || is_new {
        return Ok(());
    }
    let lock = opened(&entry.path())?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir_all(entry.path())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_nobody_holds_any_more_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * NEW;
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "x").unwrap();
            File::open(&path).unwrap().set_modified(long_ago).unwrap();
            path
        };
        let (abandoned, others) = (make("agentd-sandbox-old"), make("others"));
        let held = TemporaryFolder::make(parent.path()).unwrap();
        opened(held.path()).unwrap().set_modified(long_ago).unwrap();
        let second = TemporaryFolder::make(parent.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(others.join("file").exists() && held.path().exists() && second.path().exists());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }
}
