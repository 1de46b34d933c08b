//! Short accesses to files, such as a look at the state of some or one more line at the end of one.
//!
//! The system serves them within microseconds while the files are on a disk of this machine, which is less than it takes to have another
//! thread do them and to be woken by it. On a file system of the network, or on a disk that is busy, they may take any time, and a thread of
//! the runtime must not wait for that.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::spawn_blocking;

/// What takes no longer than this may be done on a thread of the runtime.
const QUICK: Duration = Duration::from_millis(1);

/// One kind of short access to files in some folders. Cheap to clone; clones share what is known of the time that it takes.
///
/// The first access is made on a blocking thread, and so is every one after an access that took longer than a millisecond. The others are
/// made on the calling thread, if all folders are on disks of this machine.
#[derive(Debug, Clone)]
pub struct QuickAccess(Arc<Known>);

#[derive(Debug)]
struct Known {
    folders: Vec<PathBuf>,
    are_local: OnceLock<bool>,
    /// Whether the last access was quick.
    was_quick: AtomicBool,
}

/// An access that did not come to its end: the runtime is ending, or a bug panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessInterrupted(&'static str);

impl fmt::Display for AccessInterrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for AccessInterrupted {}

const PANICKED: AccessInterrupted = AccessInterrupted("the access panicked");
const ENDING: AccessInterrupted = AccessInterrupted("the daemon is ending");

impl QuickAccess {
    /// Accesses to what is in these folders, which need not be there.
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Arc::new(Known {
            folders: folders.into_iter().collect(),
            are_local: OnceLock::new(),
            was_quick: AtomicBool::new(false),
        }))
    }

    /// Accesses that are never made on the calling thread, such as those that wait for the disk.
    #[must_use]
    pub fn never() -> Self {
        let access = Self::new([]);
        // Nothing else sets it before the first access.
        let _ = access.0.are_local.set(false);
        access
    }

    /// As [`Self::run`], for a caller that does not wait for the end.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) {
        let known = Arc::clone(&self.0);
        if !known.is_quick() {
            spawn_blocking(move || known.timed(work));
        } else if catch_unwind(AssertUnwindSafe(|| known.timed(work))).is_err() {
            // The panic hook has told of it.
        }
    }

    /// Does `work` on this thread, without another one where that would be needed: `None` then, and `work` is not done. It may borrow, which
    /// spares copies for large accesses in pieces.
    pub fn run_here<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.0.is_quick().then(|| self.0.timed(work))
    }

    /// Does `work` on this thread, which must be one that may block.
    pub fn run_on_this_thread<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.find_whether_local();
        self.0.timed(work)
    }

    /// Does `work`, which may block, on this thread or another. Cancel safety: dropped early, it is done or not.
    ///
    /// # Errors
    /// [`AccessInterrupted`].
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AccessInterrupted> {
        if self.0.is_quick() {
            // On a blocking thread it would not take the task along either.
            return catch_unwind(AssertUnwindSafe(|| self.0.timed(work))).map_err(|_| PANICKED);
        }
        let known = Arc::clone(&self.0);
        let done = spawn_blocking(move || {
            known.find_whether_local();
            known.timed(work)
        });
        done.await.map_err(|error| if error.is_panic() { PANICKED } else { ENDING })
    }
}

impl Known {
    fn is_quick(&self) -> bool {
        self.was_quick.load(Ordering::Relaxed) && self.are_local.get().is_some_and(|local| *local)
    }

    fn find_whether_local(&self) {
        self.are_local.get_or_init(|| self.folders.iter().all(|folder| is_local(folder)));
    }

    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.was_quick.store(began.elapsed() <= QUICK, Ordering::Relaxed);
        done
    }
}

/// The file systems of disks and of memory, by the numbers that `statfs(2)` and Linux' `magic.h` give them.
#[cfg(target_os = "linux")]
const LOCAL: [u64; 16] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xCA45_1A4E, // bcachefs
    0x2FC1_2FC1, // ZFS
    0xF2F5_2010, // F2FS
    0x3153_464A, // JFS
    0x3434,      // NILFS
    0x5265_4973, // ReiserFS
    0x4D44,      // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS
    0x794C_7630, // overlayfs
    0xF15F,      // eCryptfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
];

/// Returns whether the folder, or the nearest one above it that there is, is on a disk of this machine. Blocks.
#[cfg(target_os = "linux")]
fn is_local(folder: &Path) -> bool {
    let about = folder.ancestors().find_map(|folder| rustix::fs::statfs(folder).ok());
    // The field's type differs between machines; the numbers have 32 bits.
    about.is_some_and(|about| {
        LOCAL.contains(&u64::try_from(i128::from(about.f_type) & 0xFFFF_FFFF).unwrap_or_default())
    })
}

/// Not known here, so that all accesses are made on blocking threads.
#[cfg(not(target_os = "linux"))]
fn is_local(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use super::*;

    async fn thread_of(access: &QuickAccess) -> ThreadId {
        access.run(|| thread::current().id()).await.unwrap()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn quick_accesses_of_a_local_folder_stay_on_their_thread() {
        let folder = tempfile::tempdir().unwrap();
        let access = QuickAccess::new([folder.path().join("not/there")]);
        let here = thread::current().id();
        assert_ne!(thread_of(&access).await, here);
        access.0.was_quick.store(true, Ordering::Relaxed);
        assert_eq!(thread_of(&access).await, here);
    }

    #[tokio::test]
    async fn an_access_that_borrows_is_made_here_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let access = QuickAccess::new([folder.path().to_owned()]);
        let mut made = 0;
        assert_eq!(access.run_here(|| made += 1), None, "nothing is known of the folder");
        access.run(|| ()).await.unwrap();
        access.0.was_quick.store(true, Ordering::Relaxed);
        let is_local = access.0.is_quick();
        assert_eq!(access.run_here(|| made += 1).is_some(), is_local);
        assert_eq!(made, i32::from(is_local));
    }

    #[tokio::test]
    async fn a_slow_access_sends_the_next_one_to_another_thread() {
        let folder = tempfile::tempdir().unwrap();
        let access = QuickAccess::new([folder.path().to_owned()]);
        let slow = || {
            let began = Instant::now();
            while began.elapsed() <= QUICK * 2 {}
        };
        access.run(slow).await.unwrap();
        assert!(!access.0.is_quick());
        assert_ne!(thread_of(&access).await, thread::current().id());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn one_folder_elsewhere_is_enough_for_another_thread() {
        let folder = tempfile::tempdir().unwrap();
        // No file system of a disk.
        let access = QuickAccess::new([folder.path().to_owned(), PathBuf::from("/proc")]);
        thread_of(&access).await;
        access.0.was_quick.store(true, Ordering::Relaxed);
        assert_ne!(thread_of(&access).await, thread::current().id());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_on_either_thread() {
        let folder = tempfile::tempdir().unwrap();
        let access = QuickAccess::new([folder.path().to_owned()]);
        assert_eq!(access.run(|| assert!(std::hint::black_box(false))).await, Err(PANICKED));
        access.run(|| ()).await.unwrap();
        access.0.was_quick.store(true, Ordering::Relaxed);
        assert_eq!(access.run(|| assert!(std::hint::black_box(false))).await, Err(PANICKED));
    }
}
