//! Running one subagent: its session is opened, asked, watched and stopped here.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_protocol::{
    command::{AbortParams, AbortScope, PromptParams, QueueParams, SessionCommand, StreamingBehavior},
    error::{ErrorCode, Failure},
    isolation::IsolationMerge,
    message::StopReason,
    settings::TaskSettings,
    subagent::{SchemaMode, StructuredStatus, SubagentResult, SubagentSnapshot, SubagentStatus, YIELD_TOOL},
};
use serde_json::Value;
use tokio::time::{Instant as Deadline, sleep_until};

use super::{files, isolation::IsolationPlace, outcome::within_limits, plan::Plan, table::Subagents};
use crate::{
    clock::now_ms,
    options::SessionOptions,
    subagent_host::{SubagentHost, SubagentSession},
    subagent_place::End,
};

/// How many subagents of one session work at the same time, unless a setting says otherwise.
const MAX_CONCURRENCY: u64 = 8;

/// How many of one depth work at the same time in a daemon.
const MAX_IN_DAEMON: u64 = 128;

/// How often one that stops without handing in its result is reminded.
const REMINDERS: u32 = 3;

/// The answers of its model after which it is told to come to its end.
const SOFT_REQUEST_BUDGET: u64 = 200;

/// The time between two events about its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(150);

/// How a subagent ended.
enum Outcome {
    /// With a result.
    Completed { output: String, data: Option<Value>, warning: Option<String> },
    /// It gave up by itself.
    GaveUp(String),
    /// It was stopped.
    Aborted(String),
    /// It failed.
    Failed(String),
}

/// Why work on an answer ended.
enum Settled {
    /// By itself.
    Done,
    /// Because it was stopped, and why.
    Stopped(String),
}

/// What a subagent is run with.
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
            last_update: now(),
            progress: None,
            parent_tool_call_id: Some(self.call_id.clone()),
            error: None,
        };
        self.subagents.add(
            snapshot.clone(),
            Arc::clone(&plan.state),
            plan.cancel.clone(),
            self.in_background,
        );
        snapshot
    }

    /// Runs one that was announced, to its end. Every way out leaves its end on record.
    pub(super) async fn run(&self, plan: Plan, index: u64) -> SubagentResult {
        let Plan { id, agent, source, task, state, warnings, .. } = &plan;
        let begun = Instant::now();
        let mut merged = None;
        let outcome = self.work(&plan, &mut merged).await;
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
            stderr: warnings.join(" "),
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
                if let Some(warning) = warning {
                    result.stderr = [result.stderr, warning]
                        .into_iter()
                        .filter(|text| !text.is_empty())
                        .collect::<Vec<_>>()
                        .join(" ");
                }
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
                result.output = state.last_answer().text;
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
        self.keep(&result).await;
        let error = result.error.clone().or_else(|| result.abort_reason.clone());
        let changed = self.subagents.change(id, |snapshot| {
            snapshot.status = status;
            snapshot.error = error;
            snapshot.last_update = now();
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

    async fn work(&self, plan: &Plan, merged: &mut Option<IsolationMerge>) -> Outcome {
        let daemon_wide = plan.options.subagent.as_ref().map_or(1, |own| own.lineage.len());
        let turn = async {
            let limit = self.settings.max_concurrency.unwrap_or(MAX_CONCURRENCY);
            let own = self.subagents.slots().acquire(limit).await;
            let of_daemon = self.subagents.daemon_slots(daemon_wide).acquire(MAX_IN_DAEMON).await;
            (own, of_daemon)
        };
        let Some(_turn) = plan.cancel.run_until_cancelled(turn).await else {
            return Outcome::Aborted("it was stopped before it began".to_owned());
        };
        plan.state.begin();
        let isolation = self.isolation.as_ref().filter(|_| plan.isolated);
        let Some(isolation) = isolation else { return self.work_at(plan, plan.options.clone()).await };
        let begun = plan.cancel.run_until_cancelled(isolation.begin(&plan.options.cwd, &plan.id)).await;
        let copy = match begun {
            Some(Ok(copy)) => copy,
            Some(Err(error)) => return Outcome::Failed(error),
            None => return Outcome::Aborted("it was stopped before it began".to_owned()),
        };
        let options =
            SessionOptions { cwd: copy.cwd(), additional_directories: Vec::new(), ..plan.options.clone() };
        let outcome = self.work_at(plan, options).await;
        let has_succeeded = matches!(outcome, Outcome::Completed { .. });
        let folder = self.subagents.folder().unwrap_or(&isolation.base_dir);
        match isolation.finish(copy, (&plan.id, &plan.task), folder, has_succeeded).await {
            Ok(outcome_of_merge) => {
                self.subagents.tell_merge(outcome_of_merge.clone()).await;
                *merged = Some(outcome_of_merge);
                outcome
            }
            Err(error) => match outcome {
                Outcome::Completed { .. } => {
                    Outcome::Failed(format!("Its changes could not be brought back: {error}"))
                }
                other => other,
            },
        }
    }

    /// Works in a session with these options.
    async fn work_at(&self, plan: &Plan, options: SessionOptions) -> Outcome {
        let session = match self.host.open(options).await {
            Ok(session) => session,
            Err(error) => return Outcome::Failed(format!("Its session could not be opened: {error}")),
        };
        let outcome = self.work_in(plan, &session).await;
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
            snapshot.last_update = now();
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
        let mut reminders = 0;
        loop {
            let settled = match self.ask(plan, session, text, deadline).await {
                Ok(settled) => settled,
                Err(failure) => return refused(failure),
            };
            if let Some(outcome) = self.handed_in(plan) {
                return outcome;
            }
            if let Settled::Stopped(reason) = settled {
                return Outcome::Aborted(reason);
            }
            let last = plan.state.last_answer();
            match last.stop_reason {
                Some(StopReason::Error) => {
                    return Outcome::Failed(last.error.unwrap_or_else(|| "Its model failed.".to_owned()));
                }
                Some(StopReason::Aborted) => return Outcome::Aborted("a client stopped it".to_owned()),
                _ => {}
            }
            if reminders == REMINDERS {
                return self.without_yield(plan, last.text);
            }
            reminders += 1;
            text = format!(
                "You have stopped without handing in your result. Call the tool {YIELD_TOOL} now: with data, or with error if the task \
                 cannot be done. (reminder {reminders} of {REMINDERS})"
            );
        }
    }

    /// The outcome, if something was handed in.
    fn handed_in(&self, plan: &Plan) -> Option<Outcome> {
        let handed_in = &plan.state.handed_in;
        Some(match handed_in.end()? {
            End::Data(data) => {
                let structured = handed_in.structured(Some(&data));
                let misfit = structured.filter(|it| it.status == StructuredStatus::Invalid);
                if let Some(misfit) = &misfit
                    && misfit.mode == SchemaMode::Strict
                {
                    let why = misfit.error.clone().unwrap_or_default();
                    return Some(Outcome::Failed(format!("Its result does not fit the schema: {why}")));
                }
                let warning = misfit.map(|_| "The result does not fit its schema.".to_owned());
                Outcome::Completed { output: shown(&data), data: Some(data), warning }
            }
            End::LastAnswer => {
                let output = plan.state.last_answer().text;
                Outcome::Completed { output, data: None, warning: None }
            }
            End::GaveUp(reason) => Outcome::GaveUp(reason),
            End::Stopped(reason) => Outcome::Failed(reason),
        })
    }

    /// The outcome of one that never handed in its result.
    fn without_yield(&self, plan: &Plan, text: String) -> Outcome {
        if let Some(data) = plan.state.handed_in.fitting(&text) {
            return Outcome::Completed { output: shown(&data), data: Some(data), warning: None };
        }
        let warning = format!(
            "SYSTEM WARNING: Subagent exited without calling yield tool after {REMINDERS} reminders."
        );
        if text.trim().is_empty() {
            return Outcome::Failed(warning);
        }
        Outcome::Completed { output: text, data: None, warning: Some(warning) }
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

/// The outcome of one whose session took no message.
fn refused(failure: Failure) -> Outcome {
    match failure.code {
        ErrorCode::Aborted | ErrorCode::ShuttingDown | ErrorCode::NoSession => {
            Outcome::Aborted("its session has ended".to_owned())
        }
        _ => Outcome::Failed(failure.error),
    }
}

/// A result as text.
fn shown(data: &Value) -> String {
    match data {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

fn now() -> u64 {
    u64::try_from(now_ms()).unwrap_or_default()
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
