//! Runs a `bash` call that becomes a job when it takes too long.

use std::{sync::Arc, time::Duration};

use agentd_agent::{ToolError, ToolProgress};
use agentd_process::{
    AdoptedOutput, AdoptedProcess, Delivery, HeadTailBuffer, JobFacts, JobTerms, OutputTail, ShellRun,
};
use agentd_protocol::tool::ToolResult;
use tokio::{
    select,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    call::{CallOutput, Updates},
    features::JobsFeature,
    jobs::{JobCommand, backgrounded, details},
    report,
    timeout::BashTimeout,
};
use crate::undo::{CommandWatch, explain_gap};

/// Runs a command as a plain call does, for `after` at most; then it goes on as a job.
pub(super) async fn run(
    feature: &JobsFeature,
    command: JobCommand,
    after: Duration,
    timeout: Option<BashTimeout>,
    changes: CommandWatch,
    progress: &ToolProgress,
) -> Result<ToolResult, ToolError> {
    let JobCommand { written, mut job, outputs, call_id } = command;
    progress.report(ToolResult::default());
    // An abort of the call stops the command only while it is waited for.
    let cancel = std::mem::replace(&mut job.cancel, CancellationToken::new());
    let stop = job.cancel.clone();
    let started = select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError(report::ABORTED.into())),
        started = feature.processes.shell.start_run(job) => started,
    };
    let mut run = started.map_err(|error| ToolError(error.to_string()))?;
    run.allow_large_pieces();
    let mut output = CallOutput::new(OutputTail::new(outputs));
    let mut updates = Updates::new(progress);
    let mut moves_at = Instant::now().checked_add(after);
    loop {
        select! {
            biased;
            () = cancel.cancelled(), if !stop.is_cancelled() => stop.cancel(),
            () = sleep_until(moves_at.unwrap_or_else(Instant::now)), if moves_at.is_some() && !stop.is_cancelled() => {
                // It is asked once: where as many run as may, the call goes on waiting.
                moves_at = None;
                if let Some(adopted) = adopt(feature, &run, &written, &call_id, &mut output).await {
                    return Ok(moved(feature, Moved { run, output, adopted, changes }));
                }
            }
            chunk = run.next() => match chunk {
                Some(chunk) => {
                    output.push(chunk).await;
                    updates.changed(&output);
                }
                None => break,
            },
            () = sleep_until(updates.next()), if updates.are_due() => updates.send(&output),
        }
    }
    output.finish().await;
    if updates.are_due() {
        updates.send(&output);
    }
    let CallOutput { tail, halves, .. } = output;
    let done = report::result(&tail, halves, &run.finish(), timeout);
    explain_gap(done, changes.end().await)
}

/// Puts the command in the list and on record; `None` where that cannot be, and it stays a call.
async fn adopt(
    feature: &JobsFeature,
    run: &ShellRun,
    written: &str,
    call_id: &str,
    output: &mut CallOutput,
) -> Option<AdoptedProcess> {
    let terms = JobTerms {
        facts: JobFacts { is_recorded: true, call_id: Some(call_id.to_owned()), ..JobFacts::default() },
        delivery: Delivery::Due,
        ..JobTerms::default()
    };
    output.tail.open_file().await;
    let seen = output.tail.snapshot();
    let window = output.tail.window();
    let so_far = AdoptedOutput {
        text: &seen.content,
        total_bytes: window.total_bytes(),
        line_feeds: window.total_lines(),
        file: output.tail.file(),
    };
    let list = &feature.processes.list;
    let adopted = list.adopt(run, written.to_owned(), terms, feature.processes.limits, &so_far);
    let adopted = adopted.inspect_err(|error| tracing::debug!(%error, "a command stays a call")).ok()?;
    match feature.processes.recorder.began(Arc::clone(adopted.process())).await {
        Ok(()) => Some(adopted),
        Err(error) => {
            tracing::warn!(error, "a command stays a call: the job could not be put on record");
            None
        }
    }
}

/// A command that has become a job.
struct Moved {
    run: ShellRun,
    output: CallOutput,
    adopted: AdoptedProcess,
    changes: CommandWatch,
}

/// Goes on reading the command's output in a task, and returns the result of the call.
fn moved(feature: &JobsFeature, moved: Moved) -> ToolResult {
    let process = Arc::clone(moved.adopted.process());
    let so_far = report::tail_text(&moved.output.tail);
    let mut text = backgrounded(process.id());
    if !so_far.is_empty() {
        text = format!("{text}\n\nOutput so far:\n{so_far}");
    }
    feature.processes.list.spawn(async move {
        let Moved { mut run, mut output, adopted, changes } = moved;
        output.halves = HeadTailBuffer::new();
        while let Some(chunk) = run.next().await {
            let (text, raw) = output.tail_text(chunk).await;
            adopted.push(&text, raw, output.tail.file());
        }
        let rest = output.tail.finish().await;
        adopted.push(rest, 0, output.tail.file());
        adopted.finish(&run.finish());
        // The result is with the model by then: the checkpoint says what is not kept.
        let _ = changes.end().await;
    });
    ToolResult { details: Some(details(&process)), ..ToolResult::text(text) }
}
