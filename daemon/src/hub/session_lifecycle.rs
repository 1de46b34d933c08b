//! One known session at a time: it is loaded into memory, unloaded when idle, and closed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agentd_protocol::{
    daemon::EndMode,
    error::{ErrorCode, Failure},
};
use agentd_session::{Services, SessionEnd};
use tokio::task::JoinError;

use super::{
    LoadedGuard, SessionSlot, WatchBroker, heap_trimmer::HeapTrimmer, session_map::SessionMap,
    session_slot::State,
};

/// Loads, unloads and closes known sessions. Decides nothing: the callers say which session and when.
pub(super) struct SessionLifecycle {
    pub(super) services: Arc<Services>,
    pub(super) sessions: SessionMap,
    pub(super) watch_broker: Arc<WatchBroker>,
    heap_trimmer: HeapTrimmer,
    loaded: AtomicU64,
    unloaded: AtomicU64,
}

impl SessionLifecycle {
    pub(super) fn new(services: Arc<Services>, watch_broker: Arc<WatchBroker>) -> Self {
        Self {
            services,
            sessions: SessionMap::default(),
            watch_broker,
            heap_trimmer: HeapTrimmer::default(),
            loaded: AtomicU64::new(0),
            unloaded: AtomicU64::new(0),
        }
    }

    /// The number of loads since the start.
    pub(super) fn loaded(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// The number of unloads since the start.
    pub(super) fn unloaded(&self) -> u64 {
        self.unloaded.load(Ordering::Relaxed)
    }

    /// Runs `work` as a task of its own: it goes on when the returned future is dropped.
    ///
    /// # Errors
    /// When `work` panicked.
    pub(super) async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        self.services.tasks.spawn(work).await
    }

    /// Counts a session that came into memory.
    pub(super) fn note_loaded(&self) {
        self.loaded.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads an unloaded session back into memory; `None` when it is in memory already.
    ///
    /// # Errors
    /// When the session has ended, and when its file cannot be opened any more.
    pub(super) async fn load(&self, slot: &Arc<SessionSlot>) -> Result<Option<LoadedGuard>, Failure> {
        let gate = Arc::clone(&slot.gate).write_owned().await;
        let unloaded = match &*slot.state() {
            State::Loaded(_) | State::Unloading(_) => return Ok(None),
            State::Unloaded(unloaded) => unloaded.0.clone(),
            State::Ending(_) | State::Closed => return Err(ended()),
        };
        let (services, options) = (Arc::clone(&self.services), slot.options.clone());
        let handle =
            agentd_session::reload(services, options, unloaded, slot.session_clients().clone()).await?;
        *slot.state() = State::Loaded(handle.clone());
        self.note_loaded();
        Ok(Some(LoadedGuard { _gate: gate.downgrade(), handle }))
    }

    /// Unloads an idle session beside everything else. A session without a file is closed instead when no client follows it.
    pub(super) fn unload_soon(self: &Arc<Self>, slot: Arc<SessionSlot>) {
        let me = Arc::clone(self);
        self.services.tasks.spawn(async move {
            if slot.is_ephemeral() {
                if slot.is_unattended() {
                    me.close(&slot, EndMode::Abort).await;
                }
            } else {
                me.unload(&slot).await;
            }
        });
    }

    /// Unloads a session, unless a command is about to reach it or its event log has no room. Returns whether it was unloaded.
    ///
    /// Cancel safety: dropped early, it goes on by itself. A session that has released its file but is not marked as unloaded
    /// could not come back.
    pub(super) async fn unload(self: &Arc<Self>, slot: &Arc<SessionSlot>) -> bool {
        let (me, slot) = (Arc::clone(self), Arc::clone(slot));
        self.run_detached(async move { me.unload_now(&slot).await }).await.unwrap_or(false)
    }

    async fn unload_now(&self, slot: &SessionSlot) -> bool {
        let Ok(_gate) = slot.gate.try_write() else { return false };
        // A session that is ending must not be marked as unloaded.
        let may_unload = !slot.has_ended() && slot.feed().has_room();
        let Some(handle) = slot.loaded().filter(|_| may_unload) else { return false };
        // A subscriber that reads nothing must not keep the session in memory.
        let _announced = slot.feed().announce();
        // Set before the actor ends: a lookup in between must not take the session for ended.
        *slot.state() = State::Unloading(handle.clone());
        let unloaded = handle.unload().await;
        let is_unloaded = unloaded.is_some();
        *slot.state() = match unloaded {
            Some(unloaded) => State::Unloaded(Box::new((unloaded, handle.summary()))),
            None => State::Loaded(handle),
        };
        if is_unloaded {
            slot.feed().forget();
            self.unloaded.fetch_add(1, Ordering::Relaxed);
            self.heap_trimmer.trim_soon();
            self.watch_broker.changed(slot.id());
        }
        is_unloaded
    }

    /// Closes a session; nothing of it is left running.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub(super) async fn close(self: &Arc<Self>, slot: &Arc<SessionSlot>, mode: EndMode) {
        let (me, slot) = (Arc::clone(self), Arc::clone(slot));
        if let Err(error) = self.run_detached(async move { me.close_now(&slot, mode).await }).await {
            tracing::error!(%error, "a session could not be closed");
        }
    }

    /// Closes a session that at most one client follows and that no other is about to follow. Returns whether it did.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub(super) async fn close_if_unshared(
        self: &Arc<Self>,
        slot: &Arc<SessionSlot>,
        end: Option<SessionEnd>,
    ) -> bool {
        let (me, slot) = (Arc::clone(self), Arc::clone(slot));
        let closing = self.run_detached(async move {
            {
                // A client that arrives has registered its intent and then waits for the gate, or finds the session ended.
                let _gate = slot.gate.write().await;
                if slot.clients() > 1 || slot.is_join_announced() || slot.has_ended() {
                    return false;
                }
                let mut state = slot.state();
                *state = match &*state {
                    State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => {
                        State::Ending(handle.clone())
                    }
                    State::Unloaded(_) | State::Closed => State::Closed,
                };
            }
            me.close_for(&slot, EndMode::Abort, end).await;
            true
        });
        closing.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a session could not be closed");
            false
        })
    }

    /// As [`Self::close`], within the task of the caller.
    pub(super) async fn close_now(&self, slot: &SessionSlot, mode: EndMode) {
        self.close_for(slot, mode, None).await;
    }

    async fn close_for(&self, slot: &SessionSlot, mode: EndMode, mut end: Option<SessionEnd>) {
        loop {
            if let Some(handle) = slot.loaded() {
                if mode == EndMode::Drain {
                    handle.idle().await;
                }
                handle.close_for(end.take()).await;
            }
            // Every command that was about to reach the session has its answer once the gate opens.
            let _gate = slot.gate.write().await;
            let mut state = slot.state();
            // Another client may have loaded it meanwhile.
            if !matches!(&*state, State::Loaded(handle) if !handle.has_ended()) {
                *state = State::Closed;
                break;
            }
        }
        slot.feed().close();
        self.remove_closed(slot);
    }

    /// Closes an unloaded session. The caller holds its gate.
    pub(super) fn close_unloaded(&self, slot: &SessionSlot) {
        *slot.state() = State::Closed;
        slot.feed().close();
        self.remove_closed(slot);
    }

    fn remove_closed(&self, slot: &SessionSlot) {
        if self.sessions.remove(slot) {
            self.watch_broker.closed(slot.id());
        }
    }

    /// Waits until an ending session of that id has ended: it holds the file until then, and may still publish events.
    pub(super) async fn wait_for_end(&self, id: &str) {
        let ending = self.sessions.get_even_ended(id).and_then(|slot| slot.loaded());
        if let Some(ending) = ending {
            ending.close().await;
        }
    }
}

/// The failure of a command for a session that has ended.
pub(super) fn ended() -> Failure {
    Failure::new(ErrorCode::NoSession, "The session has ended.")
        .hint("open_session or attach_session opens it again.")
}
