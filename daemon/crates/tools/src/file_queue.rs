//! Makes one change per file at a time, in the order of the calls.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use futures::FutureExt;
use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};

use crate::operations::{FileSystem, LocalFiles};

/// The pending changes of a session's files. Cheap to clone; clones share one queue. Sessions that work on the same
/// machine have queues [beside](FileQueue::beside) each other.
///
/// Files are identified by their real paths, so two names of one file wait for each other. Resolving a path needs the
/// disk, so a call takes its turn in two steps: [`FileQueue::ticket`] fixes the order at once, and
/// [`FileTicket::enter`] then waits. Nothing is kept of files whose changes have ended.
#[derive(Clone, Default)]
pub struct FileQueue {
    /// Held while a call resolves its path; waiters get it in the order of their tickets.
    order: Arc<FairMutex<()>>,
    files: Files,
}

type Files = Arc<Mutex<HashMap<PathBuf, Weak<FairMutex<()>>>>>;
type Waiting = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

impl FileQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A queue without an order relative to this one, for the same files: a file still has one change at a time across
    /// both. A path that resolves slowly delays only its own queue.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { order: Arc::default(), files: Arc::clone(&self.files) }
    }

    /// Takes the next place in the order of calls. Never waits.
    ///
    /// Later tickets wait until this one has entered or is dropped, so use it soon.
    #[must_use]
    pub fn ticket(&self) -> FileTicket {
        FileTicket { order: QueuePlace::take(&self.order), files: Arc::clone(&self.files) }
    }
}

/// A call's place in the order, before its file is known.
pub struct FileTicket {
    order: QueuePlace,
    files: Files,
}

impl FileTicket {
    /// Waits until every earlier change of the file at `path`, an absolute path, has ended.
    ///
    /// # Errors
    /// The system's when the path cannot be resolved, such as `ELOOP`.
    ///
    /// Cancel safety: dropping the wait gives up the place.
    pub async fn enter(self, path: PathBuf) -> io::Result<FileTurn> {
        self.enter_on(Box::new(LocalFiles), path).await
    }

    /// [`Self::enter`] for a file elsewhere.
    pub(crate) async fn enter_on(self, system: Box<dyn FileSystem>, path: PathBuf) -> io::Result<FileTurn> {
        let Self { order, files } = self;
        let order = order.wait().await;
        let found = tokio::task::spawn_blocking(move || system.real_path(&path)).await;
        let key = found.map_err(io::Error::other)??;
        let queued = Queued::join(files, key);
        drop(order);
        Ok(queued.wait().await)
    }
}

/// The right to change one file, until dropped.
pub struct FileTurn {
    // Fields drop in this order: the lock is released before its entry is removed.
    _held: OwnedMutexGuard<()>,
    entry: Entry,
}

impl FileTurn {
    /// The file's real path.
    #[must_use]
    pub fn real_path(&self) -> &Path {
        &self.entry.key
    }
}

/// A call's place in the queue of one file.
struct Queued {
    place: QueuePlace,
    entry: Entry,
}

impl Queued {
    fn join(files: Files, key: PathBuf) -> Self {
        let mut known = files.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = known.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::new(FairMutex::new(()));
            known.insert(key.clone(), Arc::downgrade(&lock));
            lock
        });
        let place = QueuePlace::take(&lock);
        drop(known);
        Self { place, entry: Entry { files, key, lock: Some(lock) } }
    }

    async fn wait(self) -> FileTurn {
        let Self { place, entry } = self;
        FileTurn { _held: place.wait().await, entry }
    }
}

/// Keeps a file's lock in the map while it is held or waited for.
struct Entry {
    files: Files,
    key: PathBuf,
    /// `None` only inside `drop`.
    lock: Option<Arc<FairMutex<()>>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut known = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock = None;
        if known.get(&self.key).is_some_and(|lock| lock.strong_count() == 0) {
            known.remove(&self.key);
        }
    }
}

/// A place in the queue of a fair lock, taken before anyone waits.
enum QueuePlace {
    Held(OwnedMutexGuard<()>),
    Waiting(Waiting),
}

impl QueuePlace {
    fn take(lock: &Arc<FairMutex<()>>) -> Self {
        let mut waiting: Waiting = Box::pin(Arc::clone(lock).lock_owned());
        // The first poll enqueues the future, without a task to wake.
        match (&mut waiting).now_or_never() {
            Some(held) => Self::Held(held),
            None => Self::Waiting(waiting),
        }
    }

    async fn wait(self) -> OwnedMutexGuard<()> {
        match self {
            Self::Held(held) => held,
            Self::Waiting(waiting) => waiting.await,
        }
    }
}

#[cfg(test)]
mod tests;
