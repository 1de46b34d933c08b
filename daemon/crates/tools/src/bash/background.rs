//! Runs a `bash` call whose command continues in the background.

use std::{sync::Arc, time::Duration};

use agentd_agent::ToolError;
use agentd_process::BackgroundJob;
use agentd_protocol::tool::ToolResult;
use tokio::select;

use super::{features::BackgroundFeature, report::ABORTED};
use crate::{
    processes::show::{OutputPart, output},
    undo::CommandWatch,
};

/// How long the call watches a new command: an early failure is then in the result.
const WATCHED: Duration = Duration::from_secs(1);

/// How long the end of a process is waited for at a time.
const LONG: Duration = Duration::from_secs(86400);

/// Starts the command, and returns its output of the first second. An abort after the start leaves it running: a
/// background process is not part of the run.
pub(super) async fn start(
    feature: &BackgroundFeature,
    job: BackgroundJob,
    changes: CommandWatch,
) -> Result<ToolResult, ToolError> {
    let cancel = job.job.cancel.clone();
    let started = select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError(ABORTED.into())),
        started = feature.list.start(&feature.shell, job, feature.limits) => started,
    };
    let process = started.map_err(|error| ToolError(error.to_string()))?;
    // Nothing is written: such a process is no job that outlasts the daemon.
    if let Err(error) = feature.recorder.began(Arc::clone(&process)).await {
        tracing::warn!(error, "the beginning of a background process was not told");
    }
    let running = Arc::clone(&process);
    // Detached: it ends with the process, which its session owns. What the process changes until then is kept as of this call.
    tokio::spawn(async move {
        while running.ended(LONG).await.is_none() {}
        // The result is with the model by then: the checkpoint says what is not kept.
        let _ = changes.end().await;
    });
    let end = select! {
        end = process.ended(WATCHED) => end,
        () = cancel.cancelled() => process.end(),
    };
    let failed = end.is_some_and(|end| !end.exit.success());
    let mut result = output(&process, OutputPart::New);
    result.is_error = failed.then_some(true);
    Ok(result)
}
