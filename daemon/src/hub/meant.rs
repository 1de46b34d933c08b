//! Which session somebody means, before it is opened.

use std::sync::Arc;

use agentd_session::{OpenError, SessionOptions, locate};

use super::{Known, Registry};

/// Which session is meant.
pub enum Meant {
    /// One that is known.
    Known(Arc<Known>),
    /// One that is on disk alone.
    File,
    /// One that is not there yet.
    New,
}

impl Registry {
    /// The session that opening with these options would give, where it is there already. Opens nothing; it may be another one
    /// by the time that it is opened.
    ///
    /// # Errors
    /// As [`Self::open`], as far as it comes to that.
    pub async fn meant_by(&self, options: &SessionOptions) -> Result<Meant, OpenError> {
        if let Some(session) = self.named(&options.target) {
            return Ok(Meant::Known(session));
        }
        let asked = options.clone();
        let Some((file, id)) = tokio::task::spawn_blocking(move || locate(&asked)).await?? else {
            return Ok(Meant::New);
        };
        Ok(self.get(&id).or_else(|| self.at(&file)).map_or(Meant::File, Meant::Known))
    }
}
