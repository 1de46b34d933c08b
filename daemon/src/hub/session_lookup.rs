//! Which session somebody means, before it is opened.

use std::sync::Arc;

use agentd_session::{OpenError, SessionOptions, locate};

use super::{SessionRegistry, SessionSlot};

/// Which session is meant.
pub enum SessionLookup {
    /// One that is known.
    Open(Arc<SessionSlot>),
    /// One that is on disk alone.
    File,
    /// One that is not there yet.
    New,
}

impl SessionRegistry {
    /// The session that opening with these options would give, where it is there already. Opens nothing; it may be another one
    /// by the time that it is opened.
    ///
    /// # Errors
    /// As [`Self::open`], as far as it comes to that.
    pub async fn look_up(&self, options: &SessionOptions) -> Result<SessionLookup, OpenError> {
        if let Some(session) = self.named(&options.target) {
            return Ok(SessionLookup::Open(session));
        }
        let asked = options.clone();
        let Some((file, id)) = tokio::task::spawn_blocking(move || locate(&asked)).await?? else {
            return Ok(SessionLookup::New);
        };
        Ok(self.get(&id).or_else(|| self.at(&file)).map_or(SessionLookup::File, SessionLookup::Open))
    }
}
