//! The run as a whole: checks, the loop, what comes after it.

use std::sync::Arc;

use agentd_agent::{
    Host, HostError, RunStart, nothing_in_flight,
    queue::{QueueKind, QueuedMessage},
    serve_in_flight_queries,
};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    event::{AgentEnd, AutoRetryEnd, AutoRetryStart, Event, MessageEnd, MessageStart, TurnEnd},
    message::{AssistantMessage, ContentBlock, Message, StopReason},
};
use tokio_util::sync::CancellationToken;

use super::{
    channels::{RunBeginning, RunChannels},
    host::RunHost,
    message::RunMessage,
    observed::ObservedRun,
    prepare::{FirstMessage, begin_with, read_stream_rules, run_prompt, unless},
};
use crate::{budget::RunGuard, context::SessionContext, transcript::FailedAnswer};

/// Runs until nothing more comes of it. Ends with [`RunMessage::Refused`] or [`RunMessage::Settled`].
pub(crate) async fn drive(context: Arc<SessionContext>, beginning: RunBeginning, channels: RunChannels) {
    // A budget of time stops the run as an abort does, but the session was not asked to abort it.
    let cancel = channels.cancel.child_token();
    let channels = RunChannels { cancel: cancel.clone(), ..channels };
    let prompt = if let RunBeginning::Prompt(prompt) = &beginning { Some(prompt) } else { None };
    let limits = prompt.and_then(|prompt| prompt.budget);
    let traceparent = prompt.and_then(|prompt| prompt.traceparent.as_deref());
    let mut observed = ObservedRun::begin(&context, traceparent);
    let guard = RunGuard::begin(&context.budget, limits);
    if let Some(hooks) = &context.hooks {
        hooks.begin_run();
    }
    let mut host = RunHost::new(context, channels, matches!(beginning, RunBeginning::AfterCrash));
    let refused = guard
        .within_time(&cancel, async {
            match prepared(&mut host, beginning, &cancel).await {
                Ok(start) => {
                    host.send(RunMessage::Accepted).await;
                    let mut start = start;
                    loop {
                        run_on(&mut host, start, &cancel).await;
                        if host.settle_boundary().await {
                            start = RunStart::default();
                            continue;
                        }
                        match host.ask_stop_hooks().await {
                            Some(again) => start = again,
                            None => break,
                        }
                    }
                    // A budget may also have ended what came after the last answer.
                    host.report_budget().await;
                    None
                }
                Err(failure) => {
                    Some(host.context.budget.reached().map_or(failure, |reached| reached.failure()))
                }
            }
        })
        .await;
    // Before clients are told that the run is over: they may ask for the budgets.
    drop(guard);
    observed.refused = refused.as_ref().map(|failure| failure.code);
    drop(observed);
    if refused.is_none() {
        host.tell_extensions_settled().await;
        // What handlers showed comes before the end that clients get.
        host.take_from_extensions().await;
    }
    host.send(refused.map_or(RunMessage::Settled, RunMessage::Refused)).await;
}

/// Checks the prompt and makes the messages that the run begins with. The checks may wait for a command that prints a
/// key.
async fn prepared(
    host: &mut RunHost,
    beginning: RunBeginning,
    cancel: &CancellationToken,
) -> Result<RunStart, Failure> {
    let gone = |error: HostError| Failure::new(ErrorCode::Internal, error.to_string());
    let context = Arc::clone(&host.context);
    host.find_model(cancel).await?;
    host.check_budget().await?;
    host.compact_before_prompt().await.map_err(gone)?;
    if let Some(mcp) = &context.mcp {
        // Their tools are declared with the prompt, or with a later turn.
        let ready = unless(cancel, async {
            mcp.ready().await;
            Ok(())
        });
        serve_in_flight_queries(host, ready, nothing_in_flight).await.map_err(gone)??;
    }
    if let Some(started) = host.channels.extensions_started.clone() {
        // What they do when a session begins is part of its first prompt.
        let ready = unless(cancel, async {
            started.cancelled().await;
            Ok(())
        });
        serve_in_flight_queries(host, ready, nothing_in_flight).await.map_err(gone)??;
        host.take_from_extensions().await;
    }
    if let Some(started) = host.channels.hooks_started.clone() {
        let ready = unless(cancel, async {
            started.cancelled().await;
            Ok(())
        });
        serve_in_flight_queries(host, ready, nothing_in_flight).await.map_err(gone)??;
    }
    let mut snapshot = host.snapshot().await.map_err(gone)?;
    host.intents.choose(&snapshot.choice);
    if !matches!(beginning, RunBeginning::Prompt(_) | RunBeginning::Custom(_)) {
        read_stream_rules(&context).await;
    }
    let first = match beginning {
        RunBeginning::Prompt(prompt) => FirstMessage::User(prompt),
        RunBeginning::Custom(message) => FirstMessage::Custom(message),
        RunBeginning::AfterCrash | RunBeginning::Context => return Ok(RunStart::default()),
        RunBeginning::Queued => {
            let queued = host.next_in_queues().await.map_err(gone)?;
            if queued.is_empty() {
                let text = "Cannot continue: the queued messages were taken back.";
                return Err(Failure::new(ErrorCode::Aborted, text));
            }
            return Ok(RunStart { messages: Vec::new(), queued });
        }
    };
    let prompt = unless(cancel, run_prompt(&context, (&snapshot.tools, &snapshot.declarable), &first));
    let prompt = serve_in_flight_queries(host, prompt, nothing_in_flight).await.map_err(gone)??;
    if let Some(tools) = prompt.tools.clone() {
        snapshot.tools = host.ask(|done| RunMessage::UseTools { names: tools, done }).await.map_err(gone)?;
    }
    host.declare(&snapshot.tools);
    let preparation = unless(cancel, begin_with(&context, snapshot, first, prompt));
    serve_in_flight_queries(host, preparation, nothing_in_flight).await.map_err(gone)?
}

/// Repeats the run for retries, after a compaction, and while messages are queued. An aborted run leaves queued
/// messages for the next prompt. Where a budget takes the place of a retry or of a fallback model, the run is repeated, too: no model
/// is asked any more, and the last answer says why.
async fn run_on(host: &mut RunHost, mut start: RunStart, cancel: &CancellationToken) {
    loop {
        let ended = match agentd_agent::run(host, start, cancel).await {
            Ok(ended) => ended,
            Err(error) => return host.report_end(error).await,
        };
        if let Some(substitute) = host.fallbacks.take_planned() {
            host.end_retries(if cancel.is_cancelled() {
                "Retry cancelled"
            } else {
                &substitute.event.error_message
            })
            .await;
            if host.context.budget.reached().is_some() {
                start = RunStart::default();
                continue;
            }
            if cancel.is_cancelled() {
                return;
            }
            match host.fall_back(substitute).await {
                Ok(()) => {
                    start = RunStart::default();
                    continue;
                }
                Err(error) => return host.report_end(error).await,
            }
        }
        if ended.will_retry {
            match host.pause(cancel).await {
                Ok(true) => {
                    start = RunStart::default();
                    continue;
                }
                Ok(false) => {
                    host.end_retries("Retry cancelled").await;
                    if host.context.budget.reached().is_some() {
                        start = RunStart::default();
                        continue;
                    }
                }
                Err(error) => return host.report_end(error).await,
            }
        } else {
            let error = ended.last.as_ref().and_then(|answer| answer.error_message.as_deref());
            let error = error.filter(|_| !cancel.is_cancelled());
            host.end_retries(error.unwrap_or("Retry cancelled")).await;
        }
        if host.context.budget.reached().is_some() || cancel.is_cancelled() {
            return;
        }
        if let Some(answer) = &ended.last {
            match host.compact_after_run(answer).await {
                Ok(true) => {
                    start = RunStart::default();
                    continue;
                }
                Ok(false) if cancel.is_cancelled() => return,
                Ok(false) => {}
                Err(error) => return host.report_end(error).await,
            }
        }
        let queued = host.next_in_queues().await.unwrap_or_default();
        if queued.is_empty() {
            return;
        }
        start = RunStart { messages: Vec::new(), queued };
    }
}

impl RunHost {
    /// The next queued messages: steering messages, else follow-ups.
    async fn next_in_queues(&mut self) -> Result<Vec<QueuedMessage>, HostError> {
        let steering = self.next_queued(QueueKind::Steering).await?;
        if steering.is_empty() { self.next_queued(QueueKind::FollowUp).await } else { Ok(steering) }
    }

    /// Leaves the failed answer out of the context and waits for the time of the retry; false when the retry is given
    /// up before.
    async fn pause(&mut self, cancel: &CancellationToken) -> Result<bool, HostError> {
        let Some(planned) = self.retries.begin() else { return Ok(false) };
        let pause = cancel.child_token();
        // Before the event: a client that has seen it can give the retry up.
        self.send(RunMessage::Pause(Some(pause.clone()))).await;
        let start = AutoRetryStart {
            attempt: planned.attempt,
            max_attempts: self.context.retry.max_attempts,
            delay_ms: u64::try_from(planned.delay.as_millis()).unwrap_or(u64::MAX),
            error_message: planned.error,
        };
        self.tell(&start.into()).await;
        let omitted = self.omit_failed(FailedAnswer::WithError).await;
        let waited = match omitted {
            Ok(()) => {
                let wait = async {
                    tokio::select! {
                        biased;
                        () = pause.cancelled() => false,
                        () = tokio::time::sleep(planned.delay) => true,
                    }
                };
                serve_in_flight_queries(self, wait, nothing_in_flight).await
            }
            Err(error) => Err(error),
        };
        self.send(RunMessage::Pause(None)).await;
        waited
    }

    /// Publishes the end of a series of retries without an answer, if there was one.
    async fn end_retries(&mut self, error: &str) {
        if let Some(attempt) = self.retries.end() {
            let final_error = Some(error.to_owned());
            self.tell(&AutoRetryEnd { success: false, attempt, final_error }.into()).await;
        }
    }

    /// Publishes why a run broke off, unless the session is gone.
    async fn report_end(&mut self, error: HostError) {
        match error {
            HostError::NotStored(error) => {
                tracing::error!(error, "a run ended because a message could not be stored");
                self.send(RunMessage::NotStored).await;
                self.report_broken(error).await;
            }
            HostError::Gone => {}
        }
    }

    /// Tells the subscribers that the run broke off because the session file cannot be written.
    ///
    /// The only message that is published without being stored: it says why nothing can be stored.
    async fn report_broken(&mut self, error: String) {
        let (api, provider, model) = self.model_names().await;
        let answer = AssistantMessage {
            content: vec![ContentBlock::text("")],
            stop_reason: StopReason::Error,
            error_message: Some(error),
            ..AssistantMessage::pending(&api, &provider, &model, self.now_ms())
        };
        let Ok(message) = Json::new(Message::Assistant(answer)) else { return };
        let events = [
            Event::from(MessageStart { message: message.clone() }),
            MessageEnd { message: message.clone() }.into(),
            TurnEnd { message: message.clone(), tool_results: Vec::new() }.into(),
            AgentEnd { messages: vec![message], will_retry: false }.into(),
        ];
        for event in events {
            self.tell(&event).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future of [`drive`].
    fn size<F: Future>(_: impl FnOnce(Arc<SessionContext>, RunBeginning, RunChannels) -> F) -> usize {
        size_of::<F>()
    }

    /// Futures hold what they await, and helpers that take a future hold it twice, which multiplies by each that stands in another: a run
    /// was 54 KB once.
    #[test]
    fn a_run_is_small() {
        assert!(size(drive) <= 4 << 10, "{} bytes", size(drive));
    }
}
