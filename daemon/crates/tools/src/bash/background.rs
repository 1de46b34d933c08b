//! Runs a `bash` call whose command continues in the background.

use std::time::Duration;

use agentd_agent::ToolError;
use agentd_process::BackgroundJob;
use agentd_protocol::tool::ToolResult;
use tokio::select;

use super::{features::BackgroundFeature, report::ABORTED};
use crate::processes::show::{OutputPart, output};

/// How long the call watches a new command: an early failure is then in the result.
const WATCHED: Duration = Duration::from_secs(1);

/// Starts the command, and returns its output of the first second. An abort after the start leaves it running: a
/// background process is not part of the run.
pub(super) async fn start(feature: &BackgroundFeature, job: BackgroundJob) -> Result<ToolResult, ToolError> {
    let cancel = job.job.cancel.clone();
    let started = select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError(ABORTED.into())),
        started = feature.list.start(&feature.shell, job, feature.limits) => started,
    };
    let process = started.map_err(|error| ToolError(error.to_string()))?;
    let end = select! {
        end = process.ended(WATCHED) => end,
        () = cancel.cancelled() => process.end(),
    };
    let failed = end.is_some_and(|end| !end.exit.success());
    let mut result = output(&process, OutputPart::New);
    result.is_error = failed.then_some(true);
    Ok(result)
}
