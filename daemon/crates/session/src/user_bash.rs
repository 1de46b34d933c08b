//! Shell commands of the user: run beside everything else, recorded in the transcript.

use std::path::PathBuf;

use agentd_agent::hooks::{Action, GateDecision, Requester};
use agentd_extensions::{EventKind, UserBashResult, UserBashVerdict};
use agentd_process::{
    CleanedOutput, CleanedRun, CommandStreams, Shell, ShellError, ShellJob, SpawnError, StopCause,
};
use agentd_protocol::{
    Json,
    command::{BashParams, Work},
    error::{ErrorCode, Failure},
    event::{BashExecutionUpdate, Event},
    message::Message,
};
use agentd_store::intent_log::{BashDoneRecord, IntentRecord};
use agentd_tools::CommandWatch;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    child_environment::ChildEnvironment,
    context::SessionContext,
    event_log::Feed,
    extensions::OperationsShell,
    reply::encode,
    requests::{PendingRequest, RequestKey},
    transcript::MAX_RESULT,
};

/// The user's commands that run, and what those that ended have yet to add to the transcript.
#[derive(Default)]
pub(crate) struct UserBash {
    pub(crate) running: Vec<RunningBash>,
    pub(crate) last: u64,
    pub(crate) cancel: CancellationToken,
    /// Results that came during a run: they are added at its edges, so that they never come between a tool call and its
    /// result.
    pub(crate) unstored: Vec<UnstoredResult>,
}

/// The result of a command.
pub(crate) struct UnstoredResult {
    /// The command's number.
    pub(crate) number: u64,
    pub(crate) message: Json<Message>,
    /// The command's `requestKey`.
    pub(crate) key: Option<RequestKey>,
}

/// A command that runs.
pub(crate) struct RunningBash {
    pub(crate) number: u64,
    pub(crate) work: Work,
    /// When it began: Unix time in milliseconds.
    pub(crate) since_ms: i64,
    /// Waiters for its end.
    pub(crate) waiting: Vec<oneshot::Sender<()>>,
}

/// The end of a command.
pub(crate) struct BashEnd {
    pub(crate) number: u64,
    pub(crate) request: PendingRequest,
    pub(crate) params: BashParams,
    pub(crate) result: Result<BashResult, Failure>,
}

/// The result of a command.
#[derive(Default)]
pub(crate) struct BashResult {
    pub(crate) output: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) cancelled: bool,
    pub(crate) truncated: bool,
    pub(crate) full_output: Option<PathBuf>,
}

impl UserBash {
    /// Whether results wait to be stored.
    pub(crate) fn has_results(&self) -> bool {
        !self.unstored.is_empty()
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.running.is_empty()
    }

    /// The commands that run.
    pub(crate) fn works(&self) -> impl Iterator<Item = Work> {
        self.running.iter().map(|running| running.work.clone())
    }

    /// Kills every running command, as [`Self::abort_all`]; gives what they were, and tells when each has ended.
    pub(crate) fn abort_each(&mut self) -> (Vec<Work>, Vec<oneshot::Receiver<()>>) {
        self.abort_all();
        let told = |running: &mut RunningBash| {
            let (end, told) = oneshot::channel();
            running.waiting.push(end);
            (running.work.clone(), told)
        };
        self.running.iter_mut().map(told).unzip()
    }

    /// Kills every running command, with all that it started.
    pub(crate) fn abort_all(&mut self) {
        std::mem::take(&mut self.cancel).cancel();
    }
}

impl From<CleanedOutput> for BashResult {
    fn from(CleanedOutput { output, full_output, outcome }: CleanedOutput) -> Self {
        let cancelled = outcome.stopped == Some(StopCause::Aborted);
        let mut text = output.content;
        if let Some(StopCause::Limit(limit)) = outcome.stopped {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&limit.to_string());
        }
        Self {
            output: text,
            exit_code: outcome.exit.map(|exit| exit.code).filter(|_| !cancelled),
            cancelled,
            truncated: output.truncated,
            full_output,
        }
    }
}

/// Asks whether a command may start.
pub(crate) async fn may_run(
    context: &SessionContext,
    command: &str,
    cancel: &CancellationToken,
) -> GateDecision {
    if context.gate.is_open() {
        return GateDecision::Free { arguments: None };
    }
    let arguments = json!({"command": command});
    let action = Action {
        by: Requester::User,
        tool: "bash",
        arguments: &arguments,
        cwd: &context.cwd,
        is_trusted_read: false,
        declares_reading: false,
        schema: None,
        must_ask: None,
    };
    context.gate.before(&action, cancel).await
}

/// The failure for a command that did not start.
pub(crate) fn shell_failure(error: &ShellError) -> Failure {
    match error {
        ShellError::Spawn(error @ SpawnError::TooMany { .. }) => {
            Failure::limit(error.to_string(), "daemon.maxCommands", "")
        }
        error => Failure::new(ErrorCode::Io, error.to_string()),
    }
}

/// A command came to its end. Its message waits to be stored; without one there is nothing to be stored any more.
pub(crate) fn done(number: u64, message: Option<Json<Message>>) -> IntentRecord {
    let stored = message.is_none();
    let message = message.filter(|message| message.text_len() <= MAX_RESULT);
    IntentRecord::BashDone(BashDoneRecord { number, message, stored })
}

/// Where a command of the user runs, as the extensions have it.
pub(crate) enum CommandPlace {
    /// In the session's shell.
    Usual,
    /// In one of an extension.
    Elsewhere(OperationsShell),
    /// Nowhere: an extension has its result.
    Done(BashResult),
}

/// Asks the extensions where a command runs.
///
/// # Errors
/// One of them prevents it.
pub(crate) async fn placed(
    context: &SessionContext,
    params: &BashParams,
    cancel: &CancellationToken,
) -> Result<CommandPlace, Failure> {
    let Some(extensions) = context.extensions.as_ref().filter(|it| it.listens(EventKind::UserBash)) else {
        return Ok(CommandPlace::Usual);
    };
    let cwd = context.cwd.display().to_string();
    let asked = extensions.user_bash(&params.command, params.exclude_from_context, &cwd);
    Ok(match cancel.run_until_cancelled(asked).await {
        None => CommandPlace::Done(BashResult { cancelled: true, ..BashResult::default() }),
        Some(UserBashVerdict::Usual) => CommandPlace::Usual,
        Some(UserBashVerdict::Elsewhere(operations)) => {
            CommandPlace::Elsewhere(OperationsShell { operations, tasks: context.services.tasks.clone() })
        }
        Some(UserBashVerdict::Done(result)) => CommandPlace::Done(result.into()),
        Some(UserBashVerdict::Blocked(reason)) => return Err(Failure::new(ErrorCode::Forbidden, reason)),
    })
}

impl From<UserBashResult> for BashResult {
    fn from(result: UserBashResult) -> Self {
        Self {
            output: result.output,
            exit_code: result.exit_code,
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output: result.full_output_path.map(PathBuf::from),
        }
    }
}

/// Runs a command and publishes its output as it comes. `shell`: another one than the session's.
pub(crate) async fn run_bash<M: Send>(
    (context, shell): (&SessionContext, Option<&dyn Shell>),
    (work, command, base): (Work, &str, Option<ChildEnvironment>),
    id: Option<&Value>,
    (to_actor, as_message, feed): (&mpsc::Sender<M>, fn(Bytes) -> M, &Feed),
    cancel: CancellationToken,
) -> Result<CleanedOutput, ShellError> {
    let shell = shell.unwrap_or(&*context.shell);
    let there = cancel.run_until_cancelled(shell.directory(&context.cwd)).await;
    // A command that was aborted by now is killed when it starts, wherever that is.
    let cwd = there.unwrap_or_else(|| Ok(context.cwd.clone()))?;
    let job = ShellJob {
        command: context.prefixed_command(command),
        cwd,
        base,
        env: Vec::new(),
        timeout: None,
        cancel,
        streams: CommandStreams::Output,
        work,
        outside_sandbox: false,
    };
    let stopped = job.cancel.clone();
    // What the command changes is the user's own.
    let changes = CommandWatch::begin(context.undo.as_ref(), None, "bash", Requester::User).await;
    let mut run = CleanedRun::start(shell, job, context.outputs.clone()).await?;
    while let Some(delta) = run.next().await {
        let event = Event::from(BashExecutionUpdate { id: id.cloned(), delta });
        match encode(&event) {
            Ok(event) => {
                // The subscribers' pace is the command's pace, also while the session itself does not wait for them. What a
                // killed command has still said is little.
                let _ = stopped.run_until_cancelled(feed.room()).await;
                let _ = to_actor.send(as_message(event)).await;
            }
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }
    let finished = run.finish();
    // What the user changed is not kept at all.
    let _ = changes.end().await;
    finished
}
