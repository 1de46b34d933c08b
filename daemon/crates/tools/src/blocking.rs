//! Runs file work off the runtime's threads, and waits for the turn to change a file.

use std::{io, path::Path};

use agentd_agent::ToolError;
use tokio_util::sync::CancellationToken;

use crate::{
    file_queue::{FileTicket, FileTurn},
    operations::FileHost,
};

/// Runs `work` on a blocking thread to its end, so that nothing of it continues after the call.
///
/// # Errors
/// Those of `work`; a panic becomes a message, too.
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
/// The error that `failed` makes of the system's when the path cannot be resolved, or that the call was aborted.
pub(crate) async fn enter(
    ticket: FileTicket,
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

/// The error of an aborted call.
pub(crate) fn aborted() -> ToolError {
    ToolError("Operation aborted".to_owned())
}
