//! The lock that pi takes on its own files: a folder beside the file, held by its maker. Taking it keeps the two programs from
//! losing each other's changes.
//!
//! A folder stays when its maker is killed. agentd makes it only under a lock of its own, which the system releases, and notes
//! there when it was made; so the next agentd recognises the folder of a dead one at once.

use std::{
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::private_file::Lock;

/// Its holder renews the folder's time while it lives; after this long it is taken for dead.
const STALE: Duration = Duration::from_secs(30);

/// The pause between two attempts while another program has the lock: the file system sends no notification.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The difference between the time of a folder and the note about it: file times are coarse, and the maker may be delayed.
const NOTED: Duration = Duration::from_millis(20);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct NeighbourLock<'a> {
    path: PathBuf,
    ours: &'a Lock,
}

impl<'a> NeighbourLock<'a> {
    /// Takes the lock of the file at `path`, under `ours`, which belongs to the same file. Its folder must exist. Blocks; we
    /// hold it for moments only, so that nothing has to renew it.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] when another program has it until `deadline`; else what the file system says.
    pub(crate) fn take(path: &Path, ours: &'a Lock, deadline: Instant) -> io::Result<Self> {
        let lock = Self::path_for(path);
        // The process that noted that was killed before it removed the note.
        let left = ours.note().and_then(|note| Some(UNIX_EPOCH + Duration::from_nanos(note.parse().ok()?)));
        if left.is_some_and(|noted| is_of(&lock, noted)) {
            // Somebody else may take it for stale at the same moment.
            let _ = fs::remove_dir(&lock);
        }
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            ours.set_note(&now.as_nanos().to_string())?;
            match DirBuilder::new().mode(0o700).create(&lock) {
                Ok(()) => return Ok(Self { path: lock, ours }),
                Err(error) => {
                    ours.set_note("")?;
                    if error.kind() != ErrorKind::AlreadyExists {
                        return Err(error);
                    }
                }
            }
            if is_stale(&lock)? {
                // The next process to make it has it; a folder that is gone already is as good.
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

    /// The path of a file's lock: beside the file itself, not beside a link to it.
    pub(crate) fn path_for(path: &Path) -> PathBuf {
        let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let mut lock = file.into_os_string();
        lock.push(".lock");
        lock.into()
    }
}

impl Drop for NeighbourLock<'_> {
    fn drop(&mut self) {
        // If this fails, others wait until it counts as stale, and say what they wait for.
        let _ = fs::remove_dir(&self.path);
        let _ = self.ours.set_note("");
    }
}

/// Returns whether the lock was made when that was noted.
fn is_of(lock: &Path, noted: SystemTime) -> bool {
    let made = fs::symlink_metadata(lock).and_then(|about| about.modified());
    made.is_ok_and(|made| made >= noted - NOTED && made <= noted + NOTED)
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
    use crate::private_file;

    #[test]
    fn one_holder_at_a_time_and_dead_ones_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let now = Instant::now();
        let ours = private_file::lock(&folder.path().join("ours")).unwrap();
        // A program that has no part in our lock.
        let other = private_file::lock(&folder.path().join("other")).unwrap();
        let held = NeighbourLock::take(&file, &ours, now).unwrap();
        assert!(folder.path().join("auth.json.lock").is_dir());
        assert_eq!(NeighbourLock::take(&file, &other, now).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(held);
        assert!(!folder.path().join("auth.json.lock").exists());

        let dead = folder.path().join("auth.json.lock");
        fs::create_dir(&dead).unwrap();
        let old = SystemTime::now() - STALE - Duration::from_secs(1);
        fs::File::open(&dead).unwrap().set_modified(old).unwrap();
        drop(NeighbourLock::take(&file, &ours, now).unwrap());
        assert!(!dead.exists());
    }

    #[test]
    fn one_of_ours_that_was_killed_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let (file, lock) = (folder.path().join("auth.json"), folder.path().join("ours"));
        let ours = private_file::lock(&lock).unwrap();
        // A kill leaves the folder and the note.
        std::mem::forget(NeighbourLock::take(&file, &ours, Instant::now()).unwrap());
        drop(ours);
        let ours = private_file::lock(&lock).unwrap();
        drop(NeighbourLock::take(&file, &ours, Instant::now()).unwrap());
        assert_eq!(ours.note(), None);

        // The note of one that never got the lock says nothing about another program's.
        let long_ago = SystemTime::now() - Duration::from_secs(1);
        let noted = long_ago.duration_since(UNIX_EPOCH).unwrap().as_nanos();
        ours.set_note(&noted.to_string()).unwrap();
        fs::create_dir(folder.path().join("auth.json.lock")).unwrap();
        let refused = NeighbourLock::take(&file, &ours, Instant::now()).unwrap_err();
        assert_eq!((refused.kind(), ours.note()), (ErrorKind::TimedOut, None));
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
