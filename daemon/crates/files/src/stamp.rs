//! What is at paths: the states of files and folders, by which changes are noticed.
//!
//! Several parts of a system prompt ask for the same folders, each by itself: which files a folder lacks, whether its path leads through a link,
//! whether it changed. Within [`looking_once`] the first answer counts for all of them, so that they also see one state and not several.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// File systems tell times of changes in steps. What changed shortly before a scan may change again without another time. In seconds, and in
/// nanoseconds: 50 ms are several steps of Linux.
const STEP: (i64, i64) = (0, 50_000_000);

/// The state of a file or folder, by which a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    length: u64,
    number: u64,
}

impl From<&fs::Metadata> for Stamp {
    fn from(about: &fs::Metadata) -> Self {
        Self {
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
            length: about.len(),
            number: about.ino(),
        }
    }
}

impl Stamp {
    /// The state now, behind links; `None` where there is nothing. Within [`looking_once`], the state that was
    /// seen first. Blocks.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        look(path).map(|look| look.stamp)
    }

    /// Returns whether a later change would show in the stamp, which was taken after `taken`.
    #[must_use]
    pub fn is_old(&self, taken: (i64, i64)) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let later = nanoseconds + STEP.1;
        (seconds + STEP.0 + later / 1_000_000_000, later % 1_000_000_000) < taken
    }

    /// The number of the file, whatever its path: on its device no other has it while it is there.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What is at a path, behind links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Its state.
    pub stamp: Stamp,
    /// The device that it is on.
    pub device: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
}

thread_local! {
    static READING: RefCell<Option<Reading>> = const { RefCell::new(None) };
}

struct Reading {
    /// When it began, as [`now`] says.
    began: (i64, i64),
    found: HashMap<PathBuf, Option<Look>>,
}

/// Does `work`, in which [`look`] and [`Stamp::of`] look at each path once: for work that reads and changes nothing. Within another such work
/// it is a part of that.
pub fn looking_once<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the reading when `work` panics, too.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            READING.with_borrow_mut(|reading| *reading = None);
        }
    }
    let is_part = READING.with_borrow_mut(|reading| {
        reading.is_some() || {
            *reading = Some(Reading { began: clock(), found: HashMap::new() });
            false
        }
    });
    let _end = (!is_part).then(|| End);
    work()
}

/// What is there now, or was when the reading that is under way on this thread first looked; `None` for nothing. Blocks.
#[must_use]
pub fn look(path: &Path) -> Option<Look> {
    READING.with_borrow_mut(|reading| {
        let Some(reading) = reading else { return look_now(path) };
        if let Some(found) = reading.found.get(path) {
            return *found;
        }
        let found = look_now(path);
        reading.found.insert(path.to_path_buf(), found);
        found
    })
}

/// Whether something is at a path, behind links, by [`look`]. Blocks.
#[must_use]
pub fn exists(path: &Path) -> bool {
    look(path).is_some()
}

/// Whether a folder is at a path, behind links, by [`look`]. Blocks.
#[must_use]
pub fn is_folder(path: &Path) -> bool {
    look(path).is_some_and(|look| look.is_folder)
}

/// Whether a regular file is at a path, behind links, by [`look`]. Blocks.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    look(path).is_some_and(|look| look.is_file)
}

fn look_now(path: &Path) -> Option<Look> {
    let about = fs::metadata(path).ok()?;
    let stamp = Stamp::from(&about);
    Some(Look { stamp, device: about.dev(), is_folder: about.is_dir(), is_file: about.is_file() })
}

/// The time since the epoch, in seconds and nanoseconds: now, or within [`looking_once`] its beginning. A stamp that is
/// taken after it is not older.
#[must_use]
pub fn now() -> (i64, i64) {
    READING.with_borrow(|reading| reading.as_ref().map(|reading| reading.began)).unwrap_or_else(clock)
}

/// The time since the epoch, whatever is under way.
fn clock() -> (i64, i64) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_reading_sees_one_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        looking_once(|| {
            assert_eq!(look(&path), None);
            fs::write(&path, "").unwrap();
            assert_eq!(look(&path), None);
            looking_once(|| assert_eq!(look(&path), None));
            assert_eq!(Stamp::of(&path), None, "the inner one did not end the outer one");
            assert!(now() < clock(), "stamps are as old as the reading");
        });
        assert!(exists(&path) && is_file(&path) && !is_folder(&path) && Stamp::of(&path).is_some());
        assert!(exists(folder.path()) && is_folder(folder.path()) && !is_file(folder.path()));
    }

    #[test]
    fn a_panic_ends_the_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            looking_once(|| {
                assert_eq!(look(&path), None);
                std::panic::resume_unwind(Box::new(()));
            });
        }));
        fs::write(&path, "").unwrap();
        assert!(panicked.is_err() && look(&path).is_some());
    }
}
