//! Runs a `bash` call whose command is a job: it goes on beside the run, and the session's model is told of its end.

use std::{sync::Arc, time::Duration};

use agentd_agent::ToolError;
use agentd_process::{
    BackgroundJob, BackgroundProcess, Delivery, EndedBy, JobFacts, JobTerms, OutputStorage, ShellJob,
};
use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::{Map, Value, json};
use tokio::select;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::JobArguments,
    features::JobsFeature,
    ready::{LineMatch, Readiness, ReadyEnd},
    report::ABORTED,
};
use crate::{
    processes::{
        job::{called, tail},
        show::status,
    },
    undo::CommandWatch,
};

/// How long the end of a process is waited for at a time.
const LONG: Duration = Duration::from_secs(86400);

/// A command that is to be a job.
pub(super) struct JobCommand {
    /// The command as the model wrote it.
    pub(super) written: String,
    pub(super) job: ShellJob,
    pub(super) outputs: OutputStorage,
    pub(super) call_id: String,
}

/// What is said of a job when it begins.
pub(super) fn backgrounded(id: &str) -> String {
    format!("Backgrounded as job {id}; result will be delivered automatically.")
}

/// What clients are told of a job.
pub(super) fn details(process: &BackgroundProcess) -> Value {
    let facts = process.facts();
    let mut of_job = Map::new();
    let has_failed = facts.is_service && process.end().is_some();
    of_job.insert("state".to_owned(), if has_failed { "ended" } else { "running" }.into());
    of_job.insert("jobId".to_owned(), process.id().into());
    of_job.insert("type".to_owned(), if facts.is_service { "service" } else { "bash" }.into());
    if let Some(name) = &facts.name {
        of_job.insert("name".to_owned(), name.as_str().into());
    }
    json!({ "async": of_job })
}

/// Starts the command. Returns at once, or when a service is ready or has failed. An abort after the start leaves it running: a job is
/// not part of the run.
pub(super) async fn start(
    feature: &JobsFeature,
    command: JobCommand,
    arguments: JobArguments,
    changes: CommandWatch,
) -> Result<ToolResult, ToolError> {
    let JobCommand { written, job, outputs, call_id } = command;
    let JobArguments { name, ready } = arguments;
    let cancel = job.cancel.clone();
    let (listener, matched) = match ready.as_ref().and_then(Readiness::listener) {
        Some((listener, matched)) => (Some(listener), Some(matched)),
        None => (None, None),
    };
    let list = &feature.processes.list;
    let replaced = name.as_deref().and_then(|name| list.get(name)).filter(|it| it.end().is_none());
    let terms = JobTerms {
        facts: JobFacts {
            is_service: name.is_some() || ready.is_some(),
            name,
            is_recorded: true,
            call_id: Some(call_id),
        },
        keeps_file: true,
        // While the call waits for a service, it tells the end.
        delivery: if ready.is_some() { Delivery::Held } else { Delivery::Due },
        listener,
    };
    let job = BackgroundJob { label: written, job, outputs, terms };
    let begin = async {
        if let (Some(ready), None) = (&ready, &replaced) {
            ready.check_port().await?;
        }
        let started = list.start(&feature.processes.shell, job, feature.processes.limits).await;
        started.map_err(|error| ToolError(error.to_string()))
    };
    let started = select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError(ABORTED.into())),
        started = begin => started,
    };
    let process = started?;
    if let Err(problem) = feature.processes.recorder.began(Arc::clone(&process)).await {
        process.delivery().told();
        // What no record tells of would be forgotten by a crash.
        let _ = process.kill(EndedBy::Request).await;
        return Err(ToolError(format!("The job could not be put on record, and was ended: {problem}")));
    }
    let running = Arc::clone(&process);
    list.spawn(async move {
        while running.ended(LONG).await.is_none() {}
        // The result is with the model by then: the checkpoint says what is not kept.
        let _ = changes.end().await;
    });
    let restarted = replaced.map(|old| format!("It takes the place of {}, which was ended.", old.id()));
    let Some(ready) = ready else {
        return Ok(plain(&process, restarted));
    };
    let end = wait(&process, &ready, matched, &cancel).await;
    Ok(of_service(&process, &ready, end, restarted))
}

/// The result for a job that nobody waits for.
fn plain(process: &BackgroundProcess, restarted: Option<String>) -> ToolResult {
    let text = std::iter::once(backgrounded(process.id())).chain(restarted);
    let text = text.collect::<Vec<_>>().join(" ");
    ToolResult { details: Some(details(process)), ..ToolResult::text(text) }
}

async fn wait(
    process: &BackgroundProcess,
    ready: &Readiness,
    matched: Option<LineMatch>,
    cancel: &CancellationToken,
) -> ReadyEnd {
    select! {
        biased;
        end = process.ended(ready.timeout) => match end {
            Some(_) => ReadyEnd::Ended,
            None => ReadyEnd::TimedOut,
        },
        () = ready.wait(matched) => ReadyEnd::Ready,
        () = cancel.cancelled() => ReadyEnd::Stopped,
    }
}

/// The result for a service.
fn of_service(
    process: &BackgroundProcess,
    ready: &Readiness,
    end: ReadyEnd,
    restarted: Option<String>,
) -> ToolResult {
    if matches!(end, ReadyEnd::Ended) || !process.delivery().release() {
        return ended(process, restarted);
    }
    let (what, seconds) = (called(process), process.age().as_secs_f64());
    let (said, is_error) = match end {
        ReadyEnd::Ready => (format!("{what} is ready after {seconds:.1} seconds."), false),
        ReadyEnd::Stopped => {
            (format!("{what} runs on; the call was stopped before it was ready ({}).", ready.shown()), true)
        }
        ReadyEnd::TimedOut | ReadyEnd::Ended => (
            format!(
                "{what} runs, but was not ready within {} seconds ({}). Look at proc://{} for what it does; write to proc://{}/kill to end \
                 it.",
                ready.timeout.as_secs_f64(),
                ready.shown(),
                process.id(),
                process.id()
            ),
            true,
        ),
    };
    result(process, [Some(said), restarted], is_error)
}

/// The result for a service that has ended within the call, which tells it.
fn ended(process: &BackgroundProcess, restarted: Option<String>) -> ToolResult {
    process.delivery().told();
    let said = format!("{} {} before it was ready.", called(process), status(process));
    result(process, [Some(said), restarted], true)
}

fn result(process: &BackgroundProcess, said: [Option<String>; 2], is_error: bool) -> ToolResult {
    let said = said.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let shown = tail(process, READY_LINES);
    let text = if shown.is_empty() { said } else { format!("{said}\n\n{shown}") };
    ToolResult {
        content: vec![ContentBlock::text(text)],
        details: Some(details(process)),
        is_error: is_error.then_some(true),
        ..ToolResult::default()
    }
}

/// Lines of output that the result of a service has.
const READY_LINES: usize = 100;
