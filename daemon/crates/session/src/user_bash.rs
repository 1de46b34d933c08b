//! Shell commands of the user (`bash`, `abort_bash`): run beside everything else, recorded in the transcript.

use std::path::PathBuf;

use agentd_agent::hooks::{Action, GateDecision, Requester};
use agentd_process::{
    CleanedOutput, CleanedRun, CommandStreams, ShellError, ShellJob, SpawnError, StopCause,
};
use agentd_protocol::{
    Json,
    command::{BashParams, Work, WorkKind},
    error::{ErrorCode, Failure},
    event::{BashExecutionUpdate, Event},
    message::{BashExecutionMessage, Message},
};
use agentd_store::intent_log::{BashDoneRecord, BashRecord, IntentRecord};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    actor::Actor,
    child_environment::ChildEnvironment,
    clock::now_ms,
    context::SessionContext,
    feed::Feed,
    intent_log::MAX_RESULT,
    journal::store_failure,
    reply::encode,
    requests::{CachedAnswer, PendingRequest, RequestKey},
    run_message::RunMessage,
};

/// The user's commands that run, and what those that ended have yet to add to the transcript.
#[derive(Default)]
pub(crate) struct UserBash {
    running: Vec<RunningBash>,
    last: u64,
    cancel: CancellationToken,
    /// Results that came during a run: they are added at its edges, so that they never come between a tool call and its
    /// result.
    unstored: Vec<UnstoredResult>,
}

/// The result of a command.
struct UnstoredResult {
    /// The command's number.
    number: u64,
    message: Json<Message>,
    /// The command's `requestKey`.
    key: Option<RequestKey>,
}

/// A command that runs.
struct RunningBash {
    number: u64,
    work: Work,
    /// Who wants to know when it has ended.
    waiting: Vec<oneshot::Sender<()>>,
}

/// How a command ended.
pub(crate) struct BashEnd {
    number: u64,
    request: PendingRequest,
    params: BashParams,
    result: Result<BashResult, Failure>,
}

/// What came of a command.
#[derive(Default)]
struct BashResult {
    output: String,
    exit_code: Option<i32>,
    cancelled: bool,
    truncated: bool,
    full_output: Option<PathBuf>,
}

impl UserBash {
    /// Whether results wait to be stored.
    fn has_results(&self) -> bool {
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

impl Actor {
    /// Starts a command; its end is answered by [`Actor::on_bash_end`].
    pub(crate) fn start_bash(&mut self, params: BashParams, request: PendingRequest) {
        self.user_bash.last += 1;
        let number = self.user_bash.last;
        let (id, name) = (request.id().cloned(), Some(params.command.clone()));
        let work = Work { kind: WorkKind::Bash, id, name };
        self.user_bash.running.push(RunningBash { number, work: work.clone(), waiting: Vec::new() });
        let cancel = self.user_bash.cancel.child_token();
        let (context, to_actor) = (std::sync::Arc::clone(&self.context), self.to_actor.clone());
        let (intent_log, feed) = (self.journal.intent_log().clone(), self.feed.clone());
        let environment = self.environment_of(Some(&request));
        let begun = IntentRecord::Bash(BashRecord {
            number,
            at: now_ms(),
            command: params.command.clone(),
            exclude_from_context: params.exclude_from_context,
            request_key: request.key().map(ToString::to_string),
        });
        self.tasks.spawn(async move {
            let result = match may_run(&context, &params.command, &cancel).await {
                GateDecision::Free => match intent_log.intend(vec![begun]).await {
                    Ok(()) => {
                        let job = (work, params.command.as_str(), environment);
                        run(&context, job, request.id(), (&to_actor, &feed), cancel)
                            .await
                            .map(BashResult::from)
                            .map_err(|error| shell_failure(&error))
                    }
                    Err(error) => Err(store_failure(&error)),
                },
                GateDecision::Blocked { reason, .. } => Err(Failure::new(ErrorCode::Forbidden, reason)),
                GateDecision::Stopped => Ok(BashResult { cancelled: true, ..BashResult::default() }),
            };
            let end = BashEnd { number, request, params, result };
            // Without the actor there is nobody to tell.
            let _ = to_actor.send(RunMessage::BashEnded(Box::new(end))).await;
        });
    }

    pub(crate) async fn on_bash_end(&mut self, end: BashEnd) {
        let BashEnd { number, request, params, result } = end;
        let at = self.user_bash.running.iter().position(|running| running.number == number);
        let running = at.map(|at| self.user_bash.running.remove(at));
        let result = match result {
            Ok(output) => self.record_bash(number, params, output, request.key().cloned()).await,
            Err(failure) => {
                // Nothing came of it.
                self.journal.intent_log().note(done(number, None)).await;
                Err(failure)
            }
        };
        match result {
            Ok(message) => self.answer(request, CachedAnswer::Bash(message)),
            Err(failure) => self.refuse(request, failure),
        }
        for waiting in running.into_iter().flat_map(|running| running.waiting) {
            // Whoever waited may have left.
            let _ = waiting.send(());
        }
        self.tell_idle();
    }

    async fn record_bash(
        &mut self,
        number: u64,
        params: BashParams,
        ran: BashResult,
        key: Option<RequestKey>,
    ) -> Result<Json<Message>, Failure> {
        let message = Message::BashExecution(BashExecutionMessage {
            command: params.command,
            output: ran.output,
            exit_code: ran.exit_code,
            cancelled: ran.cancelled,
            truncated: ran.truncated,
            full_output_path: ran.full_output.map(|path| path.display().to_string()),
            timestamp: now_ms(),
            exclude_from_context: params.exclude_from_context.then_some(true),
        });
        let message =
            Json::new(message).map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        self.user_bash.unstored.push(UnstoredResult { number, message: message.clone(), key });
        if !self.run.is_active() {
            self.store_bash_messages().await;
        }
        if self.user_bash.has_results() {
            self.journal.intent_log().note(done(number, Some(message.clone()))).await;
        }
        Ok(message)
    }

    /// Adds the results that wait to the transcript, after all that is due before them. Where the disk does not take one, it waits
    /// on.
    pub(crate) async fn store_bash_messages(&mut self) {
        if self.unflushed.is_due() {
            return;
        }
        let mut results = std::mem::take(&mut self.user_bash.unstored).into_iter();
        while let Some(UnstoredResult { number, message, key }) = results.next() {
            let then = done(number, None);
            if let Err(error) = self.journal.append_message(message.clone(), key.as_ref(), then).await {
                tracing::error!(%error, "the result of a command of the user could not be stored");
                self.user_bash.unstored.push(UnstoredResult { number, message, key });
                self.user_bash.unstored.extend(results);
                return self.unflushed.results_wait(&error);
            }
        }
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
async fn may_run(context: &SessionContext, command: &str, cancel: &CancellationToken) -> GateDecision {
    if context.gate.is_open() {
        return GateDecision::Free;
    }
    let arguments = json!({"command": command});
    let action = Action { by: Requester::User, tool: "bash", arguments: &arguments, cwd: &context.cwd };
    context.gate.before(&action, cancel).await
}

/// What a client is told about a command that did not start.
fn shell_failure(error: &ShellError) -> Failure {
    match error {
        ShellError::Spawn(error @ SpawnError::TooMany { .. }) => {
            Failure::limit(error.to_string(), "daemon.maxCommands", "")
        }
        error => Failure::new(ErrorCode::Io, error.to_string()),
    }
}

/// A command came to its end. Its message waits to be stored; without one there is nothing to be stored any more.
fn done(number: u64, message: Option<Json<Message>>) -> IntentRecord {
    let stored = message.is_none();
    let message = message.filter(|message| message.text().len() <= MAX_RESULT);
    IntentRecord::BashDone(BashDoneRecord { number, message, stored })
}

/// Runs a command and publishes its output as it comes.
async fn run(
    context: &SessionContext,
    (work, command, base): (Work, &str, Option<ChildEnvironment>),
    id: Option<&Value>,
    (to_actor, feed): (&mpsc::Sender<RunMessage>, &Feed),
    cancel: CancellationToken,
) -> Result<CleanedOutput, ShellError> {
    let there = cancel.run_until_cancelled(context.shell.directory(&context.cwd)).await;
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
    };
    let stopped = job.cancel.clone();
    let mut run = CleanedRun::start(&*context.shell, job, context.outputs.clone()).await?;
    while let Some(delta) = run.next().await {
        let event = Event::from(BashExecutionUpdate { id: id.cloned(), delta });
        match encode(&event) {
            Ok(event) => {
                // The subscribers' pace is the command's pace, also while the session itself does not wait for them. What a
                // killed command has still said is little.
                let _ = stopped.run_until_cancelled(feed.room()).await;
                let _ = to_actor.send(RunMessage::BashOutput { event }).await;
            }
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }
    run.finish()
}
