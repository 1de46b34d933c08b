//! A connection that there was no place for: it can see to the daemon itself, and nothing else.

use std::time::Duration;

use agentd_protocol::{
    command::{Command, DaemonCommand},
    error::Failure,
};
use tokio::sync::OwnedSemaphorePermit;

/// How long such a connection may say nothing: others want its place too.
const SILENCE: Duration = Duration::from_secs(5);

/// The place of such a connection.
#[derive(Debug)]
pub struct Reserved {
    failure: Failure,
    _place: OwnedSemaphorePermit,
}

impl Reserved {
    /// A connection that has this place while others have none for the reason given.
    #[must_use]
    pub fn new(place: OwnedSemaphorePermit, failure: Failure) -> Self {
        Self { failure, _place: place }
    }

    /// Whether it may give a command.
    ///
    /// # Errors
    /// Why there is no place for it, for every command that is not about the daemon itself.
    pub(super) fn may(&self, command: &Command) -> Result<(), Failure> {
        match command {
            Command::Daemon(
                DaemonCommand::Hello(_) | DaemonCommand::DaemonStatus(_) | DaemonCommand::Shutdown(_),
            ) => Ok(()),
            _ => Err(self.failure.clone()),
        }
    }

    /// Waits until it has said nothing for too long; gives why there is no place for it. Cancel safe; called again, the time begins anew.
    pub(super) async fn is_silent(&self) -> Failure {
        tokio::time::sleep(SILENCE).await;
        self.failure.clone()
    }
}
