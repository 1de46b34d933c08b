//! Which sessions are live. Many by construction; `--stdio` is the case of one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_auth::CommandCache;
use agentd_session::{OpenError, Opened, Services, SessionHandle, SessionOptions};
use futures::future::join_all;

/// Opens sessions and knows those that are open.
pub struct Registry {
    services: Arc<Services>,
    live: Mutex<HashMap<String, SessionHandle>>,
}

impl Registry {
    /// An empty registry; sessions get what they share from `services`.
    #[must_use]
    pub fn new(services: Arc<Services>) -> Self {
        Self { services, live: Mutex::new(HashMap::new()) }
    }

    /// The outputs of commands that print keys, which all sessions share.
    #[must_use]
    pub fn key_commands(&self) -> CommandCache {
        self.services.key_commands.clone()
    }

    /// Opens a session and keeps it.
    ///
    /// # Errors
    /// What made opening fail: a file that is no session, one that another process writes, an unknown model.
    pub async fn open(&self, options: SessionOptions) -> Result<Opened, OpenError> {
        let opened = agentd_session::open(Arc::clone(&self.services), options).await?;
        self.live().insert(opened.handle.id().to_owned(), opened.handle.clone());
        Ok(opened)
    }

    /// Ends a session: its run is aborted, everything is stored, nothing of it is left running.
    pub async fn close(&self, session: &SessionHandle) {
        session.close().await;
        self.live().remove(session.id());
    }

    /// Ends all sessions, side by side.
    pub async fn close_all(&self) {
        let sessions: Vec<SessionHandle> = self.live().drain().map(|(_, session)| session).collect();
        join_all(sessions.iter().map(SessionHandle::close)).await;
        self.services.tasks.close();
        self.services.tasks.wait().await;
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, SessionHandle>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
