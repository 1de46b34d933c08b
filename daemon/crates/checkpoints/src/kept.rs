//! What is kept below one agent directory: the store, and when it is pruned.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, flock};

use crate::{
    limits::UndoLimits,
    prune::{self, Live, PruneLimits},
    state::FileState,
    store::{Store, private_folder},
};

/// The age of checkpoints is looked at once in this time, when something is kept.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause after which pruning is tried again when another process uses the store.
const TRY_AGAIN: Duration = Duration::from_secs(10 * 60);

/// A folder whose index is in use.
pub(crate) trait InUse: Send + Sync {
    /// Where the index is kept for the next daemon.
    fn file(&self) -> PathBuf;

    /// Calls `each` with every state whose content has to stay.
    fn for_each_state(&self, each: &mut dyn FnMut(&FileState));
}

/// What is kept below one agent directory.
pub(crate) struct Kept {
    pub(crate) folder: PathBuf,
    pub(crate) store: Store,
    limits: UndoLimits,
    folders: Mutex<Vec<Weak<dyn InUse>>>,
    /// Held shared by a caller that keeps contents, until an index or a file names them; by a prune exclusively.
    contents: RwLock<()>,
    pruning: Mutex<Pruning>,
    /// How often it was pruned.
    generation: AtomicU64,
    /// Locked shared while the store is in use, exclusively by a process that prunes.
    lock: File,
    /// Held while a process changes its lock of the other file, which is no single step.
    gate: File,
}

struct Pruning {
    thread: Option<JoinHandle<()>>,
    last: Instant,
    /// Until when another process keeps this one from it.
    not_before: Option<Instant>,
    /// Bytes that were left when room was made for the last time.
    left: u64,
}

impl Kept {
    /// Opens what is kept in `folder`. Prunes when no other process uses it.
    pub(crate) fn open(folder: &Path, limits: &UndoLimits) -> io::Result<Arc<Self>> {
        private_folder(folder)?;
        let (lock, gate) = (lock_file(&folder.join("lock"))?, lock_file(&folder.join("prune.lock"))?);
        // Contents that another process is about to remove must not be taken for kept ones.
        flock(&gate, FlockOperation::LockExclusive)?;
        let is_alone = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let store = Store::open(folder, limits.max_total_bytes)?;
        let pruning = Pruning { thread: None, last: Instant::now(), not_before: None, left: 0 };
        let kept = Arc::new(Self {
            folder: folder.to_owned(),
            store,
            limits: *limits,
            folders: Mutex::default(),
            contents: RwLock::default(),
            pruning: Mutex::new(pruning),
            generation: AtomicU64::new(0),
            lock,
            gate,
        });
        if is_alone {
            kept.prune_alone();
        }
        flock(&kept.lock, FlockOperation::LockShared)?;
        flock(&kept.gate, FlockOperation::Unlock)?;
        Ok(kept)
    }

    /// A folder is in use: its contents stay for as long as it is.
    pub(crate) fn add_folder(&self, folder: Weak<dyn InUse>) {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|folder| folder.strong_count() > 0);
        folders.push(folder);
    }

    /// Keeps contents from being pruned before something names them. Taken before any other lock, and once.
    pub(crate) fn using(&self) -> RwLockReadGuard<'_, ()> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grows with each pruning: what was read from the folder before may be gone.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Prunes on a thread of its own when the store is nearly full, has refused a content, or was not pruned for a day. Called
    /// without locks, after something was kept.
    pub(crate) fn tidy(self: &Arc<Self>) {
        let mut pruning = self.pruning.lock().unwrap_or_else(PoisonError::into_inner);
        let is_at_work = pruning.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if is_at_work || !self.is_due(&pruning) {
            return;
        }
        let kept = Arc::clone(self);
        match std::thread::Builder::new().name("undo-prune".into()).spawn(move || kept.prune()) {
            Ok(thread) => pruning.thread = Some(thread),
            Err(error) => tracing::warn!(%error, "what is kept for undo is pruned later"),
        }
    }

    fn is_due(&self, pruning: &Pruning) -> bool {
        let now = Instant::now();
        if pruning.not_before.is_some_and(|time| now < time) {
            return false;
        }
        let (bytes, max, left) = (self.store.bytes(), self.limits.max_total_bytes, pruning.left);
        // Where little could be removed, more has to come before it is tried again.
        let is_nearly_full = bytes > nearly(max) && bytes >= left / 2 + max / 2;
        let has_refused = self.store.has_refused() && bytes >= left + max / 64;
        is_nearly_full || has_refused || now.duration_since(pruning.last) >= PRUNE_EVERY
    }

    pub(crate) fn prune(&self) {
        let alone = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        let locked = flock(&self.gate, FlockOperation::LockExclusive);
        let is_alone = locked.is_ok() && flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_alone {
            self.prune_alone();
        } else {
            let mut pruning = self.pruning.lock().unwrap_or_else(PoisonError::into_inner);
            pruning.not_before = Some(Instant::now() + TRY_AGAIN);
        }
        let unlocked = flock(&self.lock, FlockOperation::LockShared)
            .and_then(|()| flock(&self.gate, FlockOperation::Unlock));
        if let Err(error) = unlocked {
            tracing::warn!(%error, "the store of undo cannot be locked");
        }
        drop(alone);
    }

    /// Prunes; no other process and no other thread uses the store.
    fn prune_alone(&self) {
        let max = self.limits.max_total_bytes;
        let makes_room = self.store.has_refused() || self.store.bytes() > nearly(max);
        // Room for some time, so that this is rare.
        let max_bytes = if makes_room { max / 4 * 3 } else { max };
        let folders: Vec<Arc<dyn InUse>> = {
            let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.iter().filter_map(Weak::upgrade).collect()
        };
        let mut live = Live { files: HashSet::new(), contents: HashSet::new() };
        for folder in &folders {
            live.files.insert(folder.file());
            folder.for_each_state(&mut |state| live.take(state));
        }
        let limits = PruneLimits { max_age: self.limits.max_age, max_bytes };
        if let Err(error) = prune::prune(&self.folder, &self.store, limits, live) {
            tracing::warn!(%error, "what is kept for undo could not be pruned");
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.store.forget_refusal();
        let mut pruning = self.pruning.lock().unwrap_or_else(PoisonError::into_inner);
        pruning.last = Instant::now();
        if makes_room {
            pruning.left = self.store.bytes();
        }
    }

    /// Waits for a pruning that runs.
    #[cfg(test)]
    pub(crate) fn finish_pruning(&self) {
        let thread = self.pruning.lock().unwrap_or_else(PoisonError::into_inner).thread.take();
        if let Some(thread) = thread {
            thread.join().unwrap();
        }
    }
}

/// The size from which room is made.
fn nearly(max: u64) -> u64 {
    max / 10 * 9
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}
