//! The lock that the reference takes on its own files: a folder beside the file. Who makes it has it; taking it as well
//! keeps two different programs from losing each other's changes.

use std::{
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// Its holder renews the folder's time while it lives; after this long it is taken for dead.
const STALE: Duration = Duration::from_secs(30);

/// How often to look again while another program has it. The file system tells nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct NeighbourLock(PathBuf);

impl NeighbourLock {
    /// Takes the lock of the file at `path`. Its folder must exist. Blocks; we hold it for moments only, so that nothing
    /// has to renew it.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] when another program has it until `deadline`; else what the file system says.
    pub(crate) fn take(path: &Path, deadline: Instant) -> io::Result<Self> {
        let lock = Self::path_for(path);
        loop {
            match DirBuilder::new().mode(0o700).create(&lock) {
                Ok(()) => return Ok(Self(lock)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if is_stale(&lock)? {
                // Whoever is next to make it has it; that it is gone already is as good.
                match fs::remove_dir(&lock) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            } else if Instant::now() >= deadline {
                return Err(ErrorKind::TimedOut.into());
            } else {
                thread::sleep(LOOK_AGAIN);
            }
        }
    }

    /// Where the lock of a file is: beside the file itself, not beside a link to it.
    pub(crate) fn path_for(path: &Path) -> PathBuf {
        let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let mut lock = file.into_os_string();
        lock.push(".lock");
        lock.into()
    }
}

impl Drop for NeighbourLock {
    fn drop(&mut self) {
        // If this fails, others wait until it counts as stale, and say what they wait for.
        let _ = fs::remove_dir(&self.0);
    }
}

fn is_stale(lock: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(lock) {
        Ok(about) => {
            let age = SystemTime::now().duration_since(about.modified()?);
            // One from the future is the work of a clock that was set.
            Ok(age.is_ok_and(|age| age > STALE))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_dead_ones_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let now = Instant::now();
        let held = NeighbourLock::take(&file, now).unwrap();
        assert!(folder.path().join("auth.json.lock").is_dir());
        assert_eq!(NeighbourLock::take(&file, now).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(held);
        assert!(!folder.path().join("auth.json.lock").exists());

        let dead = folder.path().join("auth.json.lock");
        fs::create_dir(&dead).unwrap();
        let old = SystemTime::now() - STALE - Duration::from_secs(1);
        fs::File::open(&dead).unwrap().set_modified(old).unwrap();
        drop(NeighbourLock::take(&file, now).unwrap());
        assert!(!dead.exists());
    }

    #[test]
    fn a_link_and_its_file_have_the_same_lock() {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::canonicalize(folder.path()).unwrap().join("real.json");
        fs::write(&file, "{}").unwrap();
        let link = folder.path().join("auth.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(NeighbourLock::path_for(&link), NeighbourLock::path_for(&file));
    }
}
