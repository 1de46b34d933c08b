//! File work off the runtime's threads, and the wait for its turn.

use std::{io, path::Path};

use agentd_agent::ToolError;
use tokio_util::sync::CancellationToken;

use crate::{
    file_queue::{FileTurn, Ticket},
    operations::FileHost,
};

/// Runs `work` on a blocking thread and waits for its end, so that nothing of it goes on after the call.
///
/// # Errors
/// What `work` says; its panic becomes a message as well.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            tracing::error!(%error, "file work stopped in the middle");
            Err(ToolError("The file operation stopped unexpectedly; try it again.".to_owned()))
        }
    }
}

/// Waits for the turn to change the file at `path`, until `cancel` fires.
///
/// # Errors
/// What `failed` makes of the system's answer when the path cannot be followed, or that the call was aborted.
pub(crate) async fn enter(
    ticket: Ticket,
    host: &dyn FileHost,
    path: &Path,
    cancel: &CancellationToken,
    failed: impl FnOnce(&io::Error) -> ToolError,
) -> Result<FileTurn, ToolError> {
    match cancel.run_until_cancelled(ticket.enter_on(host.files(cancel), path.to_owned())).await {
        Some(Ok(turn)) => Ok(turn),
        Some(Err(error)) => Err(failed(&error)),
        None => Err(aborted()),
    }
}

/// The failure of a call that was told to stop.
pub(crate) fn aborted() -> ToolError {
    ToolError("Operation aborted".to_owned())
}
