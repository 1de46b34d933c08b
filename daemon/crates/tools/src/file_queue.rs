//! One change per file at a time, in the order in which the calls were made.

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

/// The changes of files that a session has under way. Cheap to clone; every clone is the same queue. Sessions that work on the
/// same machine have queues [beside](FileQueue::beside) each other.
///
/// Files are told apart by where their paths really lead, so two names of one file wait for each other. A place in the
/// queue is taken in two steps because finding that out needs the disk: [`FileQueue::ticket`] fixes the order at once,
/// [`Ticket::enter`] then waits. Nothing is kept of files whose changes have ended.
#[derive(Clone, Default)]
pub struct FileQueue {
    /// Held while a call finds out which file it is about; waiters get it in the order of their tickets.
    order: Arc<FairMutex<()>>,
    files: Files,
}

type Files = Arc<Mutex<HashMap<PathBuf, Weak<FairMutex<()>>>>>;
type Waiting = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

impl FileQueue {
    /// A queue with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A queue for calls that have no order with those of this one, and change the same files: one change per file at a time
    /// holds for both together. What finds out slowly which file it is about holds up its own queue alone.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { order: Arc::default(), files: Arc::clone(&self.files) }
    }

    /// Takes the next place in the order of calls. Never waits.
    ///
    /// Later tickets wait until this one has entered or is dropped, so it should be used soon.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket { order: Place::take(&self.order), files: Arc::clone(&self.files) }
    }
}

/// A place in the order of calls, for a file yet to be named.
pub struct Ticket {
    order: Place,
    files: Files,
}

impl Ticket {
    /// Waits until every earlier change of the file at `path`, an absolute path, has ended.
    ///
    /// # Errors
    /// As the system has it when the path cannot be followed, such as `ELOOP`.
    ///
    /// Cancel safety: a dropped wait gives its place up and holds nothing.
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
    // Fields drop in this order: the lock is released before its entry is tidied up.
    _held: OwnedMutexGuard<()>,
    entry: Entry,
}

impl FileTurn {
    /// Where the path really leads.
    #[must_use]
    pub fn real_path(&self) -> &Path {
        &self.entry.key
    }
}

/// A place in the line for one file.
struct Queued {
    place: Place,
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
        let place = Place::take(&lock);
        drop(known);
        Self { place, entry: Entry { files, key, lock: Some(lock) } }
    }

    async fn wait(self) -> FileTurn {
        let Self { place, entry } = self;
        FileTurn { _held: place.wait().await, entry }
    }
}

/// Keeps the lock of a file known while anybody waits for it or holds it.
struct Entry {
    files: Files,
    key: PathBuf,
    /// `None` only inside of `drop`.
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

/// A place in the line for a fair lock, taken before anybody waits.
enum Place {
    Held(OwnedMutexGuard<()>),
    Waiting(Waiting),
}

impl Place {
    fn take(lock: &Arc<FairMutex<()>>) -> Self {
        let mut waiting: Waiting = Box::pin(Arc::clone(lock).lock_owned());
        // The first poll puts the future in line; nobody needs to be woken for it yet.
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
