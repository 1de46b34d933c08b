//! Writing a file of the user's: whole or not at all, one writer at a time across processes.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use agentd_files::{
    fail_point::Point,
    replace::{CreateError, Replacement},
};
use agentd_safe_open::{LinkPolicy, OpenRules};

/// Only the user may look into what we create.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// No note in a lock file is longer.
const MAX_NOTE_BYTES: usize = 64;

/// The pause between two attempts while another process has the lock.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Creates a directory and its parents, private to the user; nothing happens to one that exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Holds an exclusive advisory lock until it is dropped. The file stays: removing it would let two writers in.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// A lock between processes for work of its own, held until it is dropped or its process ends.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "held, and never looked at")] Lock);

impl FileLock {
    /// Waits for the lock file at `path`, which is made when it is not there. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] when another process has it for all of the time; else the system's.
    pub fn take(path: &Path, timeout: Duration) -> io::Result<Self> {
        lock_until(path, Instant::now() + timeout).map(Self)
    }
}

impl Lock {
    /// The note of the last holder or of this one; `None` without one.
    pub(crate) fn note(&self) -> Option<String> {
        let mut bytes = [0; MAX_NOTE_BYTES];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        String::from_utf8(bytes[..length].to_owned()).ok().filter(|text| !text.is_empty())
    }

    /// Notes something for those that have the lock later; an empty text takes it back.
    pub(crate) fn set_note(&self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all_at(text.as_bytes(), 0)
    }
}

/// Waits for the lock file at `path` (made when it is not there) and locks it.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    let file = lock_file(path)?;
    file.lock()?;
    Ok(Lock(file))
}

/// [`lock`] with a deadline.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when another process has the lock until then; else the system's.
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
    // A link, or a file that is no lock, is not ours to write a note to.
    OpenRules::new(LinkPolicy::Refused)
        .max_bytes(MAX_NOTE_BYTES as u64)
        .open_or_create(path)
        .map_err(|error| error.into_problem().into())
}

/// Puts `text` in the place of the file at `path`, through a symbolic link too. Its mode is kept; a new one is private.
/// A reader sees the old text or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(FILE_MODE, |about| about.permissions().mode() & 0o7777);
    replace_with_mode(path, text.as_bytes(), mode)
}

/// [`replace`] for a file that only the user may read afterwards.
pub(crate) fn replace_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace_with_mode(path, content.as_ref(), FILE_MODE)
}

fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    create_dir(folder)?;
    let (write, rename) = points(path);
    let mut new = temporary(folder, &target)?;
    new.write_all_at(write, content)?;
    new.file_mut().set_permissions(Permissions::from_mode(mode))?;
    new.commit_durably(&target, rename)
}

/// A new file beside `target`, locked for as long as it is open. Removes the temporary files of writers that were killed: a lock
/// marks those of living writers.
fn temporary(folder: &Path, target: &Path) -> io::Result<Replacement> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".tmp-{name}-");
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix)
            && let Ok(file) = OpenRules::new(LinkPolicy::Refused).open(&entry.path())
            && file.try_lock().is_ok()
        {
            // Another process may have removed it first.
            let _ = fs::remove_file(entry.path());
        }
    }
    loop {
        let mut new =
            Replacement::create(folder, &prefix, "", FILE_MODE).map_err(|CreateError { path, source }| {
                io::Error::new(source.kind(), format!("{source} at path {path:?}"))
            })?;
        match new.file_mut().try_lock() {
            Ok(()) => {}
            // Another process is about to remove it as a dead writer's.
            Err(TryLockError::WouldBlock) => continue,
            // On a file system without locks no process removes anything.
            Err(TryLockError::Error(_)) => return Ok(new),
        }
        if new.file_mut().metadata()?.nlink() > 0 {
            return Ok(new);
        }
    }
}

/// The fail points of the two steps of replacing a file.
fn points(path: &Path) -> (Point, Point) {
    match path.file_name().and_then(OsStr::to_str) {
        Some("settings.json") => (Point::SettingsWrite, Point::SettingsRename),
        Some("auth.json") => (Point::AuthWrite, Point::AuthRename),
        Some("trust.json") => (Point::TrustWrite, Point::TrustRename),
        _ => (Point::ModelsWrite, Point::ModelsRename),
    }
}

/// Its holder renews the folder's time while it lives; after this long it is taken for dead.
const STALE: Duration = Duration::from_secs(30);

/// The pause between two attempts while another program has the lock: the file system sends no notification.
const FOLDER_RETRY: Duration = Duration::from_millis(50);

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
                Ok(()) => {
                    // However long this process was kept from making it: the note says when it was made.
                    let held = Self { path: lock, ours };
                    if let Ok(made) = time_of(&held.path) {
                        let made = made.duration_since(UNIX_EPOCH).unwrap_or_default();
                        ours.set_note(&made.as_nanos().to_string())?;
                    }
                    return Ok(held);
                }
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
                thread::sleep(FOLDER_RETRY);
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
    time_of(lock).is_ok_and(|made| made >= noted - NOTED && made <= noted + NOTED)
}

fn time_of(lock: &Path) -> io::Result<SystemTime> {
    fs::symlink_metadata(lock)?.modified()
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

    #[test]
    fn what_killed_writers_left_goes_and_what_living_ones_write_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let dead = folder.path().join(".tmp-settings.json-dead");
        fs::write(&dead, "half").unwrap();
        let others = folder.path().join(".tmp-auth.json-x");
        fs::write(&others, "of another file").unwrap();
        let living = temporary(folder.path(), &path).unwrap();
        replace(&path, "1").unwrap();
        assert!(!dead.exists() && others.exists() && living.temporary().exists());
        living.commit(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[cfg(test)]
mod neighbour_lock_tests {
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
        let made = time_of(&folder.path().join("auth.json.lock")).unwrap();
        let made = made.duration_since(UNIX_EPOCH).unwrap().as_nanos();
        assert_eq!(ours.note().unwrap(), made.to_string(), "and not when it was about to be made");
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
