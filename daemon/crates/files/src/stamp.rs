//! The states of files and folders, by which changes are noticed.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::looks;

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
    /// The state now, behind links; `None` where there is nothing. Within [`looking_once`](crate::looking_once), the state that was
    /// seen first. Blocks.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        looks::look(path).map(|look| look.stamp)
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

/// The time since the epoch, in seconds and nanoseconds: now, or within [`looking_once`](crate::looking_once) its beginning. A stamp that is
/// taken after it is not older.
#[must_use]
pub fn now() -> (i64, i64) {
    looks::began().unwrap_or_else(clock)
}

/// The time since the epoch, whatever is under way.
pub(crate) fn clock() -> (i64, i64) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
}
