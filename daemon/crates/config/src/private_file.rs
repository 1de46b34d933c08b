//! Writing a file of the user's: whole or not at all, one writer at a time across processes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Only the user may look into what we create.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// How often to try again while someone else has the lock.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Creates a directory and its parents, private to the user; nothing happens to one that exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Holds an exclusive advisory lock until it is dropped. The file stays: removing it would let two writers in.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file is what unlocks it")] File);

/// Waits for the lock file at `path` (made when it is not there) and locks it.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    let file = lock_file(path)?;
    file.lock()?;
    Ok(Lock(file))
}

/// As [`lock`], waiting no longer than until `deadline`.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when someone else has it until then; else what the file system says.
pub(crate) fn lock_until(path: &Path, deadline: Instant) -> io::Result<Lock> {
    let file = lock_file(path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(ErrorKind::TimedOut.into());
            }
            // A lock with a time limit is nothing that the system has.
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK_AGAIN),
        }
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        create_dir(folder)?;
    }
    OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(path)
}

/// Puts `text` in the place of the file at `path`, through a symbolic link too. Its mode is kept; a new one is private.
/// A reader sees the old text or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(FILE_MODE, |about| about.permissions().mode() & 0o7777);
    replace_with_mode(path, text.as_bytes(), mode)
}

/// As [`replace`], and only the user may read the file afterwards.
pub(crate) fn replace_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace_with_mode(path, content.as_ref(), FILE_MODE)
}

fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    create_dir(folder)?;
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    // Else a crash of the machine could leave an empty file in the place of the settings.
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_mode_and_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent/settings.json");
        replace(&path, "1").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, "2").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("2", 0o644));
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
