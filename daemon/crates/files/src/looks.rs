//! What is at paths, looked at once for as long as one reading of files takes.
//!
//! Several parts of a system prompt ask for the same folders, each by itself: which files a folder lacks, whether its path leads through a link,
//! whether it changed. Within [`looking_once`] the first answer counts for all of them, so that they also see one state and not several.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::stamp::{self, Stamp};

/// What is at a path, behind links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Its state.
    pub stamp: Stamp,
    /// The device that it is on.
    pub device: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

thread_local! {
    static READING: RefCell<Option<Reading>> = const { RefCell::new(None) };
}

struct Reading {
    /// When it began, as [`stamp::now`] says.
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
            *reading = Some(Reading { began: stamp::clock(), found: HashMap::new() });
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

/// When the reading began that is under way on this thread; `None` outside of one.
pub(crate) fn began() -> Option<(i64, i64)> {
    READING.with_borrow(|reading| reading.as_ref().map(|reading| reading.began))
}

fn look_now(path: &Path) -> Option<Look> {
    let about = fs::metadata(path).ok()?;
    Some(Look { stamp: Stamp::from(&about), device: about.dev(), is_folder: about.is_dir() })
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
            assert!(stamp::now() < stamp::clock(), "stamps are as old as the reading");
        });
        assert!(look(&path).is_some_and(|look| !look.is_folder && Some(look.stamp) == Stamp::of(&path)));
        assert!(look(folder.path()).is_some_and(|look| look.is_folder));
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
