//! Sessions come into memory when somebody wants something of them, and leave it when nobody does.

use std::sync::{Arc, atomic::Ordering};

use agentd_protocol::{
    daemon::EndMode,
    error::{ErrorCode, Failure},
};

use super::{
    SessionRegistry,
    session_registry::internal,
    session_slot::{LoadedGuard, SessionSlot, State},
};

impl SessionRegistry {
    /// Sees to it that a session is in memory, and stays there while what this gives is held.
    ///
    /// # Errors
    /// When the session is over, and when its file does not open any more.
    pub async fn ensure_loaded(&self, known: &Arc<SessionSlot>) -> Result<LoadedGuard, Failure> {
        self.note_use(known);
        loop {
            let gate = Arc::clone(&known.gate).read_owned().await;
            match known.loaded() {
                _ if known.has_ended() => return Err(over()),
                Some(handle) => return Ok(LoadedGuard { _gate: gate, handle }),
                None => drop(gate),
            }
            let loading = Arc::clone(known);
            let loaded = self.run_detached(|me| async move { me.load(&loading).await }).await;
            if let Some(awake) = loaded.map_err(|error| internal(&error))?? {
                return Ok(awake);
            }
        }
    }

    /// Reads a session that rests; nothing when it is in memory already.
    async fn load(&self, known: &Arc<SessionSlot>) -> Result<Option<LoadedGuard>, Failure> {
        self.may_load()?;
        self.evict_for_memory(Some(&**known.id())).await?;
        let gate = Arc::clone(&known.gate).write_owned().await;
        let rested = match &*known.state() {
            State::Loaded(_) | State::Unloading(_) => return Ok(None),
            State::Unloaded(resting) => resting.0.clone(),
            State::Ending(_) | State::Closed => return Err(over()),
        };
        let (services, options) = (Arc::clone(&self.services), known.options.clone());
        let handle = agentd_session::reload(services, options, rested, known.feed().clone()).await?;
        *known.state() = State::Loaded(handle.clone());
        self.loaded.fetch_add(1, Ordering::Relaxed);
        self.has_grown();
        self.watch_broker().changed_at(known.id());
        Ok(Some(LoadedGuard { _gate: gate.downgrade(), handle }))
    }

    /// Takes a session out of memory that has had nothing to do; one without a file that nobody follows is closed.
    pub(super) fn unload_soon(self: Arc<Self>, id: &str) {
        let Some(known) = self.get(id) else { return };
        let tasks = self.services.tasks.clone();
        tasks.spawn(async move {
            if known.is_ephemeral() {
                if known.is_unattended() {
                    self.close(&known, EndMode::Abort).await;
                }
            } else {
                self.unload(&known).await;
            }
        });
    }

    /// Leaves it in memory if anyone is about to hand it something, or has yet to take so much that it waits for that.
    /// Whether it has left.
    ///
    /// Cancel safety: dropped early, it goes on by itself. A session that has let go of everything and is not known to rest
    /// could not come back.
    pub(super) async fn unload(&self, known: &Arc<SessionSlot>) -> bool {
        let known = Arc::clone(known);
        self.run_detached(|me| async move { me.take_out(&known).await }).await.unwrap_or(false)
    }

    async fn take_out(&self, known: &SessionSlot) -> bool {
        let Ok(_gate) = known.gate.try_write() else { return false };
        // One that is about to be over is not to come back by this.
        let may_leave = !known.has_ended() && known.feed().has_room();
        let Some(handle) = known.loaded().filter(|_| may_leave) else { return false };
        // A listener that takes nothing must not keep it here.
        let _announced = known.feed().announce();
        // From before it ends until it is known to rest: whoever looks for it meanwhile must not take it for over.
        *known.state() = State::Unloading(handle.clone());
        let rested = handle.unload().await;
        let has_left = rested.is_some();
        *known.state() = match rested {
            Some(rested) => State::Unloaded(Box::new((rested, handle.summary()))),
            None => State::Loaded(handle),
        };
        if has_left {
            known.feed().forget();
            self.unloaded.fetch_add(1, Ordering::Relaxed);
            self.heap_trimmer.trim_soon();
            self.watch_broker().changed_at(known.id());
        }
        has_left
    }
}

fn over() -> Failure {
    Failure::new(ErrorCode::NoSession, "The session has ended.")
        .hint("open_session or attach_session opens it again.")
}
