//! The end of sessions, and of their files.

use std::sync::Arc;

use agentd_config::AgentDir;
use agentd_protocol::{
    daemon::EndMode,
    error::{ErrorCode, Failure},
};
use futures::future::join_all;

use super::{
    SessionRegistry, session_list,
    session_registry::internal,
    session_slot::{SessionSlot, State},
};

impl SessionRegistry {
    /// Ends a session; nothing of it is left running.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close(&self, known: &Arc<SessionSlot>, mode: EndMode) {
        let known = Arc::clone(known);
        let closing = self.run_detached(|me| async move { me.close_now(&known, mode).await });
        if let Err(error) = closing.await {
            tracing::error!(%error, "a session could not be closed");
        }
    }

    /// Ends a session that one client at most follows, and nobody else is about to. Whether it has.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close_if_unshared(&self, known: &Arc<SessionSlot>) -> bool {
        let known = Arc::clone(known);
        let closing = self.run_detached(|me| async move {
            {
                // Whoever comes has said so and then waits for this, or comes later and finds it over.
                let _gate = known.gate.write().await;
                if known.clients() > 1 || known.is_join_announced() || known.has_ended() {
                    return false;
                }
                let mut state = known.state();
                *state = match &*state {
                    State::Loaded(handle) | State::Unloading(handle) | State::Ending(handle) => {
                        State::Ending(handle.clone())
                    }
                    State::Unloaded(_) | State::Closed => State::Closed,
                };
            }
            me.close_now(&known, EndMode::Abort).await;
            true
        });
        closing.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a session could not be closed");
            false
        })
    }

    async fn close_now(&self, known: &Arc<SessionSlot>, mode: EndMode) {
        loop {
            if let Some(handle) = known.loaded() {
                if mode == EndMode::Drain {
                    handle.idle().await;
                }
                handle.close().await;
            }
            // Whoever was about to hand it something has got an answer by now.
            let _gate = known.gate.write().await;
            let mut state = known.state();
            // It may have come back meanwhile.
            if !matches!(&*state, State::Loaded(handle) if !handle.has_ended()) {
                *state = State::Closed;
                break;
            }
        }
        known.feed().close();
        self.forget(known);
    }

    /// Deletes a session's file and long outputs. Nobody opens it meanwhile; one that rests is closed.
    ///
    /// # Errors
    /// When it is in memory, when another process writes to it, when it has no file or that cannot be deleted.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn delete(&self, id: &str, agent_dir: AgentDir) -> Result<(), Failure> {
        let id = id.to_owned();
        let deleted = self.run_detached(|me| async move { me.delete_now(id, agent_dir).await }).await;
        deleted.map_err(|error| internal(&error))?
    }

    async fn delete_now(&self, id: String, agent_dir: AgentDir) -> Result<(), Failure> {
        let _opening = self.opening.lock().await;
        // By its entry: one that is ending has its file until it is gone.
        let known = self.map().get(&*id).cloned();
        if let Some(known) = known {
            if known.has_ended() {
                self.close_now(&known, EndMode::Abort).await;
            } else {
                // Whoever hands it something has it in memory then.
                let _gate = known.gate.write().await;
                if !known.is_unloaded() {
                    let text = format!("The session \"{id}\" is in memory.");
                    return Err(Failure::new(ErrorCode::Busy, text).hint("close_session first."));
                }
                self.close_at_rest(&known);
            }
        }
        let deleted = tokio::task::spawn_blocking(move || {
            let (path, _) = session_list::file_of(&agent_dir, &id)?;
            session_list::delete(&path)
        });
        deleted.await.map_err(|error| internal(&error))?
    }

    pub(super) fn forget(&self, known: &Arc<SessionSlot>) {
        if self.let_go(known) {
            self.watch_broker().closed(known.id());
        }
    }

    /// Ends all sessions, side by side.
    pub async fn close_sessions(&self) {
        let sessions = self.known();
        join_all(sessions.iter().map(|session| self.close(session, EndMode::Abort))).await;
    }

    /// Ends all sessions, and waits for everything that works for them. None can be opened afterwards.
    pub async fn close_all(&self) {
        self.services.tasks.close();
        self.close_sessions().await;
        self.services.tasks.wait().await;
    }

    /// Whether sessions may still come into memory.
    ///
    /// # Errors
    /// `shutting_down` once all are being ended: nobody would end one that comes later.
    pub(super) fn may_load(&self) -> Result<(), Failure> {
        if self.services.tasks.is_closed() {
            return Err(Failure::new(ErrorCode::ShuttingDown, "The daemon is ending and opens no session."));
        }
        Ok(())
    }
}
