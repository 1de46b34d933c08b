//! One known session: in memory, or unloaded until the next command.
//!
//! A session that the registry knows is loaded, being unloaded, unloaded, ending, or over (`State`). A caller that sends it something
//! holds its gate for reading; loading, unloading, ending and deleting hold it for writing. No task waits for one gate while it holds
//! another. An operation that a client began with a session runs detached (`SessionLifecycle::run_detached`), so that it completes when the
//! client leaves; otherwise the file would stay locked by a session that the registry no longer tracks. A client announces its join before
//! it attaches (`JoinIntent`); a session is closed when its last plain client leaves and no join is announced.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use agentd_protocol::daemon::SessionInfo;
use agentd_session::{Feed, SessionClients, SessionHandle, SessionOptions, Summary, Target, Unloaded};
use agentd_store::iso_timestamp;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::WatchBroker;

/// A session that was opened and neither closed nor evicted since. The slot keeps the session's feed, so that subscribers notice
/// nothing when the session is unloaded and loaded again.
pub struct SessionSlot {
    id: Arc<str>,
    session_clients: SessionClients,
    /// The options that it was opened with.
    pub(super) options: SessionOptions,
    /// Its file, where that existed when the session was opened; links resolved.
    pub(super) path: Option<PathBuf>,
    pub(super) state: Mutex<State>,
    /// Held for reading while a command is handed to the session, for writing while the session is loaded, unloaded, closed or
    /// deleted. Nothing waits for a second gate while it holds one.
    pub(super) gate: Arc<RwLock<()>>,
    clients: AtomicU32,
    /// The number of clients that have announced a join.
    announced_joins: AtomicU32,
    /// When it was last used, on the clock of [`SessionMap`](super::session_map::SessionMap).
    last_use: AtomicU64,
    watch_broker: Arc<WatchBroker>,
    /// Set where a command opened it.
    opener: OnceLock<Opener>,
}

/// Which command opened a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// The session whose program sent the command, if that is known.
    pub session: Option<Arc<str>>,
    /// The connection that sent it.
    pub connection: u64,
}

/// Where a session is. Only ever replaced as a whole.
#[derive(Clone)]
pub(super) enum State {
    /// In memory.
    Loaded(SessionHandle),
    /// Being unloaded; takes no more commands.
    Unloading(SessionHandle),
    /// Being closed; takes no more commands, though its actor may not know yet.
    Ending(SessionHandle),
    /// On disk only.
    Unloaded(Box<(Unloaded, Summary)>),
    /// Closed, deleted or evicted.
    Closed,
}

/// The part of an unloaded session that eviction loses. Ordered: the cheapest is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionCost {
    /// Nothing: all of it is in its file.
    Nothing,
    /// A session without messages and without a file.
    EmptySession,
    /// Choices that last while it is open: a place in the tree, trust, a key.
    Choices,
}

/// Keeps a session in memory until it is dropped.
pub struct LoadedGuard {
    pub(super) _gate: OwnedRwLockReadGuard<()>,
    /// Sends the session commands.
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
            session_clients: handle.clients().clone(),
            options,
            path,
            state: Mutex::new(State::Loaded(handle)),
            gate: Arc::default(),
            clients: AtomicU32::new(0),
            announced_joins: AtomicU32::new(0),
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

    /// Notes the command that opened it. Only the first note counts.
    pub fn opened_by(&self, opener: Opener) {
        let _ = self.opener.set(opener);
    }

    /// The command that opened it, if one did.
    #[must_use]
    pub fn opener(&self) -> Option<&Opener> {
        self.opener.get()
    }

    /// Its events and answers.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        self.session_clients.feed()
    }

    /// The clients of the session, kept while it is not in memory.
    #[must_use]
    pub fn session_clients(&self) -> &SessionClients {
        &self.session_clients
    }

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Its handle, while it is in memory. One that is being unloaded or closed takes no more commands.
    #[must_use]
    pub fn loaded(&self) -> Option<SessionHandle> {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => Some(handle.clone()),
            State::Unloaded(_) | State::Closed => None,
        }
    }

    /// Its handle, if it is in memory, where the guard keeps it. Waits while it is being loaded or unloaded.
    pub async fn loaded_guard(&self) -> Option<LoadedGuard> {
        let gate = Arc::clone(&self.gate).read_owned().await;
        self.loaded().filter(|_| !self.has_ended()).map(|handle| LoadedGuard { _gate: gate, handle })
    }

    /// The path of its file, which need not exist yet.
    pub fn file(&self) -> Option<PathBuf> {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => {
                handle.file().map(PathBuf::from)
            }
            State::Unloaded(unloaded) => Some(unloaded.0.file().to_owned()),
            State::Closed => None,
        }
    }

    /// Whether it is unloaded: the next command loads it.
    #[must_use]
    pub fn is_unloaded(&self) -> bool {
        matches!(*self.state(), State::Unloaded(_))
    }

    /// Whether it is closed, being closed, or its actor has ended by a bug.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match &*self.state() {
            State::Loaded(handle) => handle.has_ended(),
            State::Unloading(_) | State::Unloaded(_) => false,
            State::Ending(_) | State::Closed => true,
        }
    }

    /// Counts a client that follows the session, until the count is dropped.
    #[must_use]
    pub fn client(self: &Arc<Self>) -> ClientCount {
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.watch_broker.changed(&self.id);
        ClientCount(Arc::clone(self))
    }

    /// Announces a client that is about to follow it: the session is not closed as unfollowed while the intent is held.
    #[must_use]
    pub fn announce_join(self: &Arc<Self>) -> JoinIntent {
        self.announced_joins.fetch_add(1, Ordering::SeqCst);
        JoinIntent(Arc::clone(self))
    }

    /// Whether no client follows it or is about to.
    #[must_use]
    pub fn is_unattended(&self) -> bool {
        self.clients() == 0 && !self.is_join_announced()
    }

    /// Whether a client is about to follow it. Sequentially consistent: of two clients that each announce a join in one session
    /// and then look at the other's, at least one sees the other.
    #[must_use]
    pub fn is_join_announced(&self) -> bool {
        self.announced_joins.load(Ordering::SeqCst) > 0
    }

    /// The number of clients that follow it.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    /// Its summary: the current one, or that of the moment when it was unloaded.
    #[must_use]
    pub fn summary(&self) -> Summary {
        match &*self.state() {
            State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => handle.summary(),
            State::Unloaded(unloaded) => unloaded.1.clone(),
            State::Closed => Summary::default(),
        }
    }

    /// Its row in lists of sessions. Reads no file.
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
            turns: summary.turns,
            cost: summary.cost,
            model: summary.model.map(|model| format!("{}/{}", model.provider, model.id)),
            parent_id: summary.parent_id,
            agent: self.options.subagent.as_ref().map(|own| own.agent().to_owned()),
            agent_id: self.options.subagent.as_ref().map(|own| own.id().to_owned()),
            live,
            is_streaming: summary.is_streaming,
            clients: self.clients(),
        }
    }

    /// Notes that the use with this number, of all uses of sessions, is of this session.
    pub(super) fn used(&self, number: u64) {
        self.last_use.store(number, Ordering::Relaxed);
    }

    /// The number of its last use: the larger, the later.
    pub(super) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// The cost of evicting it; `None` while it may not be evicted: in memory, followed, or with messages that are in no file.
    pub(super) fn eviction_cost(&self) -> Option<EvictionCost> {
        if !self.is_unattended() {
            return None;
        }
        let State::Unloaded(unloaded) = &*self.state() else { return None };
        let (unloaded, summary) = &**unloaded;
        Some(match unloaded {
            unloaded if unloaded.is_all_in_its_file() => EvictionCost::Nothing,
            unloaded if unloaded.has_its_file() => EvictionCost::Choices,
            _ if summary.message_count == 0 => EvictionCost::EmptySession,
            _ => return None,
        })
    }

    /// Whether it is never written to disk.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        matches!(self.options.target, Target::Ephemeral(_))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A replacement leaves it whole even if it panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Announces a client that is about to follow a session, until it is dropped.
pub struct JoinIntent(Arc<SessionSlot>);

impl Drop for JoinIntent {
    fn drop(&mut self) {
        self.0.announced_joins.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts a client that follows a session, until it is dropped.
pub struct ClientCount(Arc<SessionSlot>);

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
        self.0.watch_broker.changed(&self.0.id);
    }
}
