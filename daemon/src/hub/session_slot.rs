//! A session that the daemon knows: in memory, or unloaded until the next command.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use agentd_protocol::daemon::SessionInfo;
use agentd_session::{Feed, SessionHandle, SessionOptions, Summary, Target, Unloaded};
use agentd_store::iso_timestamp;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::WatchBroker;

/// A session that was opened and not closed since. Its feed is there as long as it is, so that those who follow it notice
/// nothing when it leaves memory and comes back.
pub struct SessionSlot {
    id: Arc<str>,
    feed: Feed,
    /// What it was opened with.
    pub(super) options: SessionOptions,
    /// Its file, as far as it was there when it was opened; links resolved.
    pub(super) path: Option<PathBuf>,
    pub(super) state: Mutex<State>,
    /// Read by whoever hands the session something, written by whoever loads or unloads it.
    pub(super) gate: Arc<RwLock<()>>,
    clients: AtomicU32,
    /// How many are about to follow it.
    expected: AtomicU32,
    /// When it was last used, in uses of sessions.
    last_use: AtomicU64,
    watch_broker: Arc<WatchBroker>,
    /// Set where a command opened it.
    opener: OnceLock<Opener>,
}

/// Which command opened a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// The session that it was a command of, if that is known.
    pub session: Option<Arc<str>>,
    /// Its connection.
    pub connection: u64,
}

/// Where a session is.
#[derive(Clone)]
pub(super) enum State {
    /// In memory.
    Loaded(SessionHandle),
    /// About to be on disk only; takes nothing any more.
    Unloading(SessionHandle),
    /// About to be over; takes nothing any more, though it may not have noticed.
    Ending(SessionHandle),
    /// On disk.
    Unloaded(Box<(Unloaded, Summary)>),
    /// Over.
    Closed,
}

/// What of a session is not in its file. What is lost first stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionCost {
    /// All of it is.
    Nothing,
    /// Nothing was said in it yet, and it has no file.
    Blank,
    /// What was chosen for as long as it is open: a place in the tree, trust, a key.
    Choices,
}

/// A session that stays in memory for as long as this is there.
pub struct LoadedGuard {
    pub(super) _gate: OwnedRwLockReadGuard<()>,
    /// The way in.
    pub handle: SessionHandle,
}

impl SessionSlot {
    pub(super) fn new(
        handle: SessionHandle,
        options: SessionOptions,
        path: Option<PathBuf>,
        watch_broker: Arc<WatchBroker>,
    ) -> Self {
        Self {
            id: handle.id().into(),
            feed: handle.feed().clone(),
            options,
            path,
            state: Mutex::new(State::Loaded(handle)),
            gate: Arc::default(),
            clients: AtomicU32::new(0),
            expected: AtomicU32::new(0),
            last_use: AtomicU64::new(0),
            watch_broker,
            opener: OnceLock::new(),
        }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Notes that a command has opened it. The first one counts.
    pub fn opened_by(&self, opener: Opener) {
        let _ = self.opener.set(opener);
    }

    /// The command that opened it, if one did.
    #[must_use]
    pub fn opener(&self) -> Option<&Opener> {
        self.opener.get()
    }

    /// What the session says.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// What it was opened with.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// The way in, while it is in memory. One that is on its way out takes nothing.
    #[must_use]
    pub fn loaded(&self) -> Option<SessionHandle> {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => Some(handle.clone()),
            State::Unloaded(_) | State::Closed => None,
        }
    }

    /// The way in, while it is in memory, which it does not leave before what is handed to it has arrived. Waits while it is
    /// being loaded or leaves.
    pub async fn loaded_guard(&self) -> Option<LoadedGuard> {
        let gate = Arc::clone(&self.gate).read_owned().await;
        self.loaded().filter(|_| !self.has_ended()).map(|handle| LoadedGuard { _gate: gate, handle })
    }

    /// Its file, which need not be there yet.
    pub fn file(&self) -> Option<PathBuf> {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => {
                handle.file().map(PathBuf::from)
            }
            State::Unloaded(resting) => Some(resting.0.file().to_owned()),
            State::Closed => None,
        }
    }

    /// Whether it left memory, and comes back with the next command.
    #[must_use]
    pub fn is_unloaded(&self) -> bool {
        matches!(*self.state(), State::Unloaded(_))
    }

    /// Whether it has ended, be it by a bug, and nobody can go on with it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match &*self.state() {
            State::Loaded(handle) => handle.has_ended(),
            State::Unloading(_) | State::Unloaded(_) => false,
            State::Ending(_) | State::Closed => true,
        }
    }

    /// Counts another client.
    #[must_use]
    pub fn client(self: &Arc<Self>) -> ClientCount {
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.watch_broker.changed_at(&self.id);
        ClientCount(Arc::clone(self))
    }

    /// Counts somebody who is about to follow it.
    #[must_use]
    pub fn expect(self: &Arc<Self>) -> JoinIntent {
        self.expected.fetch_add(1, Ordering::SeqCst);
        JoinIntent(Arc::clone(self))
    }

    /// Whether nobody follows it, nor is about to.
    #[must_use]
    pub fn is_unattended(&self) -> bool {
        self.clients() == 0 && !self.is_join_announced()
    }

    /// Whether somebody is about to follow it. Of two who each first announce themselves in one session and then look at
    /// the other's, one sees the other at least.
    #[must_use]
    pub fn is_join_announced(&self) -> bool {
        self.expected.load(Ordering::SeqCst) > 0
    }

    /// How many clients follow it.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    /// The session in a few words, as it was when it left memory if it did.
    #[must_use]
    pub fn summary(&self) -> Summary {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => handle.summary(),
            State::Unloaded(resting) => resting.1.clone(),
            State::Closed => Summary::default(),
        }
    }

    /// What lists say of it. Reads no file.
    #[must_use]
    pub fn info(&self) -> SessionInfo {
        let summary = self.summary();
        let (file, live) = (self.file(), self.loaded().is_some());
        SessionInfo {
            id: self.id.to_string(),
            path: file.map(|file| file.display().to_string()),
            cwd: self.options.cwd.display().to_string(),
            name: summary.name,
            created: iso_timestamp(summary.created_ms),
            modified: iso_timestamp(summary.modified_ms),
            message_count: summary.message_count,
            first_message: summary.first_message,
            parent_id: summary.parent_id,
            live,
            is_streaming: summary.is_streaming,
            clients: self.clients(),
        }
    }

    /// Notes that it is used, as the `number`th use of a session.
    pub(super) fn used(&self, number: u64) {
        self.last_use.store(number, Ordering::Relaxed);
    }

    /// The larger, the later it was used.
    pub(super) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// What is lost when the daemon knows it no more; `None` while it is in memory or somebody follows it.
    pub(super) fn eviction_cost(&self) -> Option<EvictionCost> {
        if !self.is_unattended() {
            return None;
        }
        let State::Unloaded(resting) = &*self.state() else { return None };
        let (rested, summary) = &**resting;
        Some(match rested {
            rested if rested.is_all_in_its_file() => EvictionCost::Nothing,
            rested if rested.has_its_file() => EvictionCost::Choices,
            _ if summary.message_count == 0 => EvictionCost::Blank,
            _ => return None,
        })
    }

    /// Whether it is never written to disk.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        matches!(self.options.target, Target::Ephemeral(_))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Only ever replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that is about to follow a session, for as long as this is there.
pub struct JoinIntent(Arc<SessionSlot>);

impl Drop for JoinIntent {
    fn drop(&mut self) {
        self.0.expected.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts a client of a session for as long as it is there.
pub struct ClientCount(Arc<SessionSlot>);

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
        self.0.watch_broker.changed_at(&self.0.id);
    }
}
