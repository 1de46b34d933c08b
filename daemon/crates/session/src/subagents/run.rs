//! Running one subagent: its session is opened, asked, watched and stopped here.

use std::{
    future::pending,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_protocol::{
    command::{AbortParams, AbortScope, PromptParams, QueueParams, SessionCommand, StreamingBehavior},
    error::Failure,
    isolation::IsolationMerge,
    message::StopReason,
    settings::TaskSettings,
    subagent::{SubagentResult, SubagentSnapshot, SubagentStatus, YIELD_TOOL},
};
use serde_json::Value;
use tokio::time::{Instant as Deadline, sleep_until};

use super::{
    ending::{Outcome, REMINDERS, handed_in, refused, without_yield},
    files,
    isolation::{IsolatedWork, IsolationPlace},
    outcome::within_limits,
    plan::Plan,
    table::Subagents,
};
use crate::{
    clock::unix_ms,
    options::SessionOptions,
    subagent_host::{SubagentHost, SubagentSession},
};

/// How many subagents of one session work at the same time, unless a setting says otherwise.
const MAX_CONCURRENCY: u64 = 8;

/// How many of one depth work at the same time in a daemon.
const MAX_IN_DAEMON: u64 = 128;

/// The answers of its model after which it is told to come to its end.
const SOFT_REQUEST_BUDGET: u64 = 200;

/// The time between two events about its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(150);

/// What came of a subagent's work.
struct Worked {
    outcome: Outcome,
    /// What became of its changes, where it worked in a copy.
    merged: Option<IsolationMerge>,
    warnings: Vec<String>,
}

impl From<Outcome> for Worked {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, merged: None, warnings: Vec::new() }
    }
}

/// Why work on an answer ended.
enum Settled {
    /// By itself.
    Done,
    /// Because it was stopped, and why.
    Stopped(String),
}

/// What a subagent is run with.
#[derive(Clone)]
pub(super) struct Runner {
    pub(super) subagents: Subagents,
    pub(super) host: Arc<dyn SubagentHost>,
    pub(super) settings: TaskSettings,
    /// The call that started it.
    pub(super) call_id: String,
    /// Whether the call does not wait for it.
    pub(super) in_background: bool,
    /// How changes are isolated, if they can be.
    pub(super) isolation: Option<IsolationPlace>,
}

impl Runner {
    /// Notes a subagent that waits for its turn.
    pub(super) fn announce(&self, plan: &Plan) -> SubagentSnapshot {
        let snapshot = SubagentSnapshot {
            id: plan.id.clone(),
            index: plan.index,
            agent: plan.agent.clone(),
            agent_source: plan.source,
            status: SubagentStatus::Pending,
            task: Some(plan.task.clone()),
            session_id: None,
            session_file: None,
            last_update: unix_ms(),
            progress: None,
            parent_tool_call_id: Some(self.call_id.clone()),
            isolated: plan.isolated,
            error: None,
        };
        self.subagents.add(
            snapshot.clone(),
            Arc::clone(&plan.state),
            plan.cancel.clone(),
            self.in_background,
            Arc::clone(&plan.inbox),
        );
        snapshot
    }

    /// Runs one that was announced, to its end. Every way out leaves its end on record.
    pub(super) async fn run(&self, plan: Plan, index: u64) -> SubagentResult {
        let Plan { id, agent, source, task, state, .. } = &plan;
        let begun = Instant::now();
        let Worked { outcome, merged, mut warnings } = self.work(&plan).await;
        warnings.splice(0..0, plan.warnings.iter().cloned());
        plan.inbox.close();
        let progress = state.progress();
        let usage = state.usage();
        let structured = |data: Option<&Value>| state.handed_in.structured(data);
        let mut result = SubagentResult {
            index,
            id: id.clone(),
            agent: agent.clone(),
            agent_source: *source,
            task: task.clone(),
            exit_code: 0,
            output: String::new(),
            stderr: String::new(),
            truncated: false,
            duration_ms: millis(begun.elapsed()),
            tokens: progress.tokens,
            requests: progress.requests,
            usage: Some(usage),
            error: None,
            aborted: false,
            abort_reason: None,
            resolved_model: state.model(),
            structured_output: None,
            session_id: self.subagents.find(id).and_then(|found| found.session_id),
            isolation: merged,
        };
        let status = match outcome {
            Outcome::Completed { output, data, warning } => {
                (result.output, result.truncated) = within_limits(output);
                result.structured_output = structured(data.as_ref());
                warnings.extend(warning);
                SubagentStatus::Completed
            }
            Outcome::GaveUp(reason) => {
                result.output = serde_json::json!({"aborted": true, "error": reason}).to_string();
                result.aborted = true;
                result.abort_reason = Some(reason);
                result.structured_output = structured(None);
                SubagentStatus::Failed
            }
            Outcome::Aborted(reason) => {
                result.exit_code = 1;
                (result.output, result.truncated) = within_limits(state.last_answer().text);
                result.aborted = true;
                result.abort_reason = Some(reason);
                result.structured_output = structured(None);
                SubagentStatus::Aborted
            }
            Outcome::Failed(error) => {
                result.exit_code = 1;
                (result.output, result.truncated) = within_limits(state.last_answer().text);
                result.error = Some(error);
                result.structured_output = structured(None);
                SubagentStatus::Failed
            }
        };
        result.stderr = warnings.join(" ");
        self.keep(&result).await;
        let error = result.error.clone().or_else(|| result.abort_reason.clone());
        let changed = self.subagents.change(id, |snapshot| {
            snapshot.status = status;
            snapshot.error = error;
            snapshot.last_update = unix_ms();
        });
        if let Some(snapshot) = changed
            && let Err(error) = self.subagents.record(vec![snapshot]).await
        {
            tracing::warn!(%error, id, "the end of a subagent could not be recorded");
        }
        if let Some(own) = self.subagents.own() {
            own.state.add_usage(result.usage.as_ref().unwrap_or(&Default::default()));
        }
        result
    }

    /// Waits for a turn and works, in a copy of the repository if that is asked for.
    async fn work(&self, plan: &Plan) -> Worked {
        let daemon_wide = plan.options.subagent.as_ref().map_or(1, |own| own.lineage.len());
        let turn = async {
            let limit = self.settings.max_concurrency.unwrap_or(MAX_CONCURRENCY);
            let own = self.subagents.slots().acquire(limit).await;
            let of_daemon = self.subagents.daemon_slots(daemon_wide).acquire(MAX_IN_DAEMON).await;
            (own, of_daemon)
        };
        let never_began = || Outcome::Aborted("it was stopped before it began".to_owned());
        let Some(_turn) = plan.cancel.run_until_cancelled(turn).await else { return never_began().into() };
        plan.state.begin();
        let isolation = self.isolation.as_ref().filter(|_| plan.isolated);
        let Some(isolation) = isolation else { return self.work_at(plan, plan.options.clone()).await.into() };
        // On the heap, as the end of it: subagents without a copy of their own, of which there may be many, need no room for it.
        let begin = Box::pin(isolation.begin(&plan.options.cwd, &plan.id));
        let begun = plan.cancel.run_until_cancelled(begin).await;
        let copy = match begun {
            Some(Ok(copy)) => copy,
            Some(Err(error)) => return Outcome::Failed(error).into(),
            None => return never_began().into(),
        };
        let options =
            SessionOptions { cwd: copy.cwd(), additional_directories: Vec::new(), ..plan.options.clone() };
        let outcome = self.work_at(plan, options).await;
        let has_succeeded = matches!(outcome, Outcome::Completed { .. });
        let folder = self.subagents.folder().unwrap_or(&isolation.base_dir);
        let work = IsolatedWork {
            id: &plan.id,
            task: &plan.task,
            state: &plan.state,
            cancel: &plan.cancel,
            has_succeeded,
        };
        match Box::pin(isolation.finish(copy, work, folder)).await {
            Ok(merged) => {
                self.subagents.tell_merge(merged.clone()).await;
                Worked { outcome, merged: Some(merged), warnings: Vec::new() }
            }
            Err(error) => {
                let told = format!("Its changes could not be brought back: {error}");
                match outcome {
                    Outcome::Completed { .. } => Outcome::Failed(told).into(),
                    // It says where they are.
                    outcome => Worked { outcome, merged: None, warnings: vec![told] },
                }
            }
        }
    }

    /// Works in a session with these options.
    async fn work_at(&self, plan: &Plan, options: SessionOptions) -> Outcome {
        let opened = match plan.reopens {
            Some(closes_first) => self.host.reopen(options, closes_first).await,
            None => self.host.open(options).await,
        };
        let session = match opened {
            Ok(session) => session,
            Err(error) => return Outcome::Failed(format!("Its session could not be opened: {error}")),
        };
        let mut work = pin!(self.work_in(plan, &session));
        let outcome = match self.subagents.relay().get() {
            Some(relay) => relay.during(&plan.id, || session.follow(), work.as_mut()).await,
            None => work.await,
        };
        if session.file().is_none() || plan.isolated {
            // Nothing could bring it back into memory, or its folder goes.
            session.close().await;
        }
        outcome
    }

    async fn work_in(&self, plan: &Plan, session: &Arc<dyn SubagentSession>) -> Outcome {
        let began = self.subagents.change(&plan.id, |snapshot| {
            snapshot.status = SubagentStatus::Running;
            snapshot.session_id = Some(session.id().to_owned());
            snapshot.session_file = session.file().map(|file| file.display().to_string());
            snapshot.last_update = unix_ms();
        });
        // On record before it does anything: after a crash it is known that it may have.
        if let Some(snapshot) = began
            && let Err(error) = self.subagents.record(vec![snapshot]).await
        {
            return Outcome::Failed(format!("It could not be recorded: {error}"));
        }
        let limit = self.settings.max_runtime_ms.filter(|limit| *limit > 0).map(Duration::from_millis);
        let deadline = limit.map(|limit| Deadline::now() + limit);
        let mut text = plan.prompt.clone();
        let (mut reminders, mut is_forced) = (0, false);
        loop {
            plan.state.force_yield(is_forced);
            let asked = self.ask(plan, session, text, deadline).await;
            plan.state.force_yield(false);
            let settled = match asked {
                Ok(settled) => settled,
                Err(failure) => return refused(failure),
            };
            let result = handed_in(&plan.state);
            if let Settled::Stopped(reason) = settled {
                return result.unwrap_or(Outcome::Aborted(reason));
            }
            let last = plan.state.last_answer();
            let outcome = match last.stop_reason {
                _ if result.is_some() => result,
                // Its model may not let itself be made to call a tool: what it said before counts.
                Some(StopReason::Error) if is_forced => Some(without_yield(&plan.state, last.text)),
                Some(StopReason::Error) => {
                    return Outcome::Failed(last.error.unwrap_or_else(|| "Its model failed.".to_owned()));
                }
                Some(StopReason::Aborted) => return Outcome::Aborted("a client stopped it".to_owned()),
                _ if last.ended_by.is_some() => {
                    let tool = last.ended_by.unwrap_or_default();
                    return Outcome::Aborted(format!("the result of a call of {tool} ended its work"));
                }
                _ if reminders == REMINDERS => Some(without_yield(&plan.state, last.text)),
                _ => None,
            };
            if let Some(outcome) = outcome {
                // What came at the last moment is still answered: another result takes the place of this one.
                let messages = plan.inbox.take_or_close();
                if messages.is_empty() {
                    return outcome;
                }
                (text, is_forced) = (messages.join("\n\n"), false);
                continue;
            }
            reminders += 1;
            is_forced = reminders == REMINDERS;
            text = format!(
                "You have stopped without handing in your result. Call the tool {YIELD_TOOL} now: with data, or with error if the task \
                 cannot be done. (reminder {reminders} of {REMINDERS})"
            );
        }
    }

    /// Sends a message and waits until its session is idle again.
    ///
    /// # Errors
    /// It was refused, or the session has ended.
    async fn ask(
        &self,
        plan: &Plan,
        session: &Arc<dyn SubagentSession>,
        message: String,
        deadline: Option<Deadline>,
    ) -> Result<Settled, Failure> {
        let params = PromptParams {
            message,
            // A client that follows it may have begun something.
            streaming_behavior: Some(StreamingBehavior::FollowUp),
            ..PromptParams::default()
        };
        session.tell(SessionCommand::Prompt(params)).await?;
        let mut idle = session.idle();
        let mut changes = plan.state.changes();
        let budget = Some(self.settings.soft_request_budget.unwrap_or(SOFT_REQUEST_BUDGET))
            .filter(|budget| *budget > 0);
        let (mut stopped, mut warned) = (None, false);
        let (mut told_at, mut is_untold) = (Deadline::now(), false);
        let stop = async |reason: String| {
            let command = SessionCommand::Abort(AbortParams { scope: Some(AbortScope::All) });
            if let Err(error) = session.tell(command).await {
                tracing::debug!(error = error.error, "a subagent that is to be stopped has ended");
            }
            Some(reason)
        };
        loop {
            let time_is_over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut idle => break,
                () = plan.cancel.cancelled(), if stopped.is_none() => {
                    stopped = stop("it was stopped".to_owned()).await;
                }
                () = time_is_over, if stopped.is_none() => {
                    let limit = self.settings.max_runtime_ms.unwrap_or_default();
                    stopped = stop(format!("it took longer than {limit} ms (task.maxRuntimeMs)")).await;
                }
                () = plan.inbox.came(), if stopped.is_none() => {
                    for message in plan.inbox.take() {
                        // In a run as steering; where that has just ended, as another one, which is waited for, too.
                        let params = PromptParams {
                            message,
                            streaming_behavior: Some(StreamingBehavior::Steer),
                            ..PromptParams::default()
                        };
                        if let Err(error) = session.tell(SessionCommand::Prompt(params)).await {
                            tracing::warn!(error = error.error, id = plan.id, "a message of another agent was lost");
                        }
                    }
                    idle = session.idle();
                }
                Ok(()) = changes.changed() => {
                    is_untold = true;
                    let requests = plan.state.progress().requests;
                    if let Some(budget) = budget {
                        if stopped.is_none() && requests >= budget + budget / 2 && requests > budget {
                            stopped = stop(format!("it made {requests} requests (task.softRequestBudget)")).await;
                        } else if !warned && requests >= budget {
                            warned = true;
                            let message = format!(
                                "You have made {requests} requests. Come to your end now, and call {YIELD_TOOL} with what you have."
                            );
                            let command = SessionCommand::Steer(QueueParams { message, ..QueueParams::default() });
                            if let Err(error) = session.tell(command).await {
                                tracing::debug!(error = error.error, "a subagent has ended before it could be told to");
                            }
                        }
                    }
                }
                () = sleep_until(told_at + PROGRESS_INTERVAL), if is_untold => {
                    (told_at, is_untold) = (Deadline::now(), false);
                    self.subagents.tell_progress(&plan.id, &plan.state).await;
                }
            }
        }
        Ok(stopped.map_or(Settled::Done, Settled::Stopped))
    }

    /// Keeps the whole result for `agent://`: in a file beside the session of the subagent, or in memory where there is none.
    async fn keep(&self, result: &SubagentResult) {
        let file = self.subagents.output_file(&result.id);
        let text: Arc<str> = result.output.as_str().into();
        let Some(file) = file else { return self.subagents.keep_output(&result.id, text) };
        let kept = Arc::clone(&text);
        let written = tokio::task::spawn_blocking(move || files::write_private(&file, kept.as_bytes()));
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, id = result.id, "the result of a subagent could not be kept");
                self.subagents.keep_output(&result.id, text);
            }
            Err(error) => tracing::error!(%error, "keeping the result of a subagent broke down"),
        }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
