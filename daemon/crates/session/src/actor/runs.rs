//! The run of a session, from its start to the point where the session is idle again: what the run stores, and who is answered.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agentd_agent::{HostError, queue::Ticket};
use agentd_files::fail_point::{self, Point};
use agentd_protocol::{
    Json,
    budget::BudgetReached,
    command::Disposition,
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::{EntryAppended, Event},
    message::Message as TranscriptMessage,
};
use agentd_store::intent_log::IntentRecord;
use bytes::Bytes;
use futures::FutureExt;

use super::session_actor::Actor;
use crate::{
    queues::Delivered,
    requests::{PendingRequest, RequestRecord},
    run::{FinishedRun, NextUserMessage, Prompt, RunBeginning, RunChannels, RunMessage},
    transcript::{FailedAnswer, Intents},
};

impl Actor {
    /// Stores a message, then publishes its event.
    pub(super) async fn store(
        &mut self,
        message: Json<TranscriptMessage>,
        event: Bytes,
        intents: Intents,
    ) -> Result<String, HostError> {
        let is_user = matches!(message.get(), Some(TranscriptMessage::User(_)));
        let NextUserMessage { record, delivered } =
            if is_user { self.run.take_next() } else { NextUserMessage::default() };
        let number = delivered.as_ref().map(Delivered::number);
        let stored = match self.journal.append_told(message.clone(), record.as_ref(), number, intents).await {
            Ok(stored) => stored,
            Err(error) => {
                // The command had no effect, here as in the file.
                match (delivered, record) {
                    (Some(delivered), _) => self.wait_again(delivered).await,
                    (None, Some(RequestRecord { key, .. })) => self.requests.forget(&key),
                    (None, None) => {}
                }
                self.unflushed.keep(message);
                return Err(HostError::NotStored(error.to_string()));
            }
        };
        if let Some(undo) = self.context.undo.as_ref().filter(|_| is_user) {
            undo.set_prompt(Some(stored.entry.clone()));
        }
        if let Some(number) = number {
            self.prompt_results.delivered(number);
        }
        fail_point::hit(Point::SessionStored);
        self.feed.publish([event]);
        fail_point::hit(Point::SessionPublished);
        // The message is stored, but what was to follow it must not happen.
        stored.intended.map_err(|error| HostError::NotStored(error.to_string()))?;
        Ok(stored.entry)
    }

    /// Leaves the failed answer at the end of the context out of it, then publishes the entries.
    pub(super) async fn omit_failed(&mut self, which: FailedAnswer) -> Result<(), HostError> {
        let omitted = self.journal.omit_failed(which).await;
        for entry in omitted.map_err(|error| HostError::NotStored(error.to_string()))? {
            self.publish(&EntryAppended { entry }.into());
        }
        Ok(())
    }

    /// Tells of a reached budget; on record first.
    pub(super) async fn tell_budget(&mut self, reached: &BudgetReached) {
        let data = match serde_json::to_value(reached) {
            Ok(data) => data,
            Err(error) => return tracing::error!(%error, "cannot write an entry"),
        };
        let entry = EntryBody::Custom { custom_type: "budget".to_owned(), data: Some(data) };
        if let Err(failure) = self.journal.append(&entry).await {
            tracing::error!(error = failure.error, "the budget that ended the work could not be recorded");
        }
        self.publish_to_introduced(&Event::from(*reached));
    }

    /// Stores what model calls took of which no other entry tells, so that the session's budget knows it when it is opened again.
    pub(super) async fn record_unsaid(&mut self) {
        let Some(usage) = self.context.budget.take_unsaid() else { return };
        let data = serde_json::json!({ "usage": usage });
        let entry =
            EntryBody::Custom { custom_type: agentd_store::SPENDING_ENTRY.to_owned(), data: Some(data) };
        if let Err(failure) = self.journal.append(&entry).await {
            tracing::error!(error = failure.error, "what a model call took could not be recorded");
        }
    }

    /// Starts the run of a prompt. The checks of the prompt are part of the run: they read files and may run commands.
    pub(super) fn start_run(&mut self, prompt: Prompt, request: PendingRequest) {
        self.going_on.give_up();
        let prompt = self.with_custom(prompt);
        self.start(RunBeginning::Prompt(prompt), Some(request));
    }

    /// Starts a run.
    pub(super) fn start(&mut self, beginning: RunBeginning, request: Option<PendingRequest>) {
        if let Some(pending) = &mut self.pending_start {
            return pending.wait_to_run(beginning, request);
        }
        self.stopped_tools.clear();
        self.stopped_run.clear();
        self.tools_interrupted = false;
        self.compacting.forget_stopped();
        self.unflushed.begin();
        let environment = self.environment_of(request.as_ref());
        let (cancel, questions) = self.run.start(request);
        self.abort.arm(cancel.clone());
        let (context, to_actor) = (Arc::clone(&self.context), self.to_actor.clone());
        let intent_log = self.journal.intent_log().clone();
        self.open_events.begin();
        let channels = RunChannels {
            to_actor: to_actor.clone(),
            questions,
            abort: self.abort.clone(),
            cancel,
            intent_log,
            open_events: self.open_events.clone(),
            survivors: self.survivors.clone(),
            extensions_started: self.context.extensions.as_ref().map(|_| self.extensions_started.clone()),
            hooks_started: self.hook_start.started.clone(),
            environment,
        };
        // The session is not idle any more, for handlers of what comes before `agent_start`, too.
        self.tell_extensions();
        self.tasks.spawn(async move {
            let run = crate::run::drive(context, beginning, channels);
            if AssertUnwindSafe(run).catch_unwind().await.is_err() {
                tracing::error!("a run panicked");
                // The actor may be gone too; then nothing waits for the run.
                let _ = to_actor.send(RunMessage::Broken).await;
            }
        });
    }

    pub(super) async fn on_accepted(&mut self) {
        self.store_bash_messages().await;
        if let Some(request) = self.run.accept() {
            self.run.comes_next(NextUserMessage {
                record: request.record(Disposition::Started),
                delivered: None,
            });
            fail_point::hit(Point::SessionAccepted);
            self.accept(request, Disposition::Started);
            self.record_mode().await;
            self.record_choice().await;
        }
    }

    /// The prompt failed its checks: there was no run, and no event was published.
    pub(super) async fn on_refused(&mut self, failure: Failure) {
        let Some(mut finished) = self.finish_run().await else { return };
        self.open_events.end();
        self.settle_intent_log();
        self.abort.disarm();
        self.end_fallback().await;
        self.use_settings().await;
        if let Some(request) = finished.request.take() {
            self.refuse(request, failure);
        } else {
            tracing::warn!(error = failure.error, "a turn that a crash interrupted cannot go on");
        }
        self.show_in_flight(None);
        self.after_run(finished).await;
    }

    pub(super) async fn on_settled(&mut self) {
        self.store_bash_messages().await;
        // Idle before the event: a client that asks after the event has to see an idle session.
        let Some(mut finished) = self.finish_run().await else { return };
        self.settle_intent_log();
        self.abort.disarm();
        self.end_fallback().await;
        self.use_settings().await;
        if let Some(request) = finished.request.take() {
            self.refuse(request, Failure::new(ErrorCode::Internal, "The run broke down before it began"));
        }
        self.show_summary();
        self.queues.publish_untold(&self.feed);
        self.settle_todos();
        if !finished.aborted {
            self.remind_of_todos();
        }
        self.tell_settled(&finished);
        self.open_events.end();
        self.show_in_flight(None);
        self.after_run(finished).await;
    }

    /// Answers the waiters for the end of a run, and starts the prompts that waited for it.
    async fn after_run(&mut self, finished: FinishedRun) {
        // A run that broke down sends no end of its compaction.
        self.compacting.in_run = false;
        self.tell_between_turns();
        self.answer_aborts(finished.aborting, finished.stopping, finished.aborted);
        for (params, request) in finished.waiting {
            match self.unflushed.failure() {
                None => self.take_prompt(params, request).await,
                Some(failure) => self.refuse(request, failure),
            }
        }
        for (command, request) in std::mem::take(&mut self.command_runs.after_run) {
            if let Some((command, request)) = self.hand_to_extensions(command, request) {
                Box::pin(self.take_unseen(command, request)).await;
            }
        }
        for request in finished.continuing {
            match self.unflushed.failure() {
                None => self.take_continue(request),
                Some(failure) => self.refuse(request, failure),
            }
        }
        self.tell_idle();
    }

    /// A message is about to be an entry; false when it waits no longer.
    pub(super) fn deliver(&mut self, ticket: Ticket) -> bool {
        let delivered = self.queues.deliver(ticket, &self.feed);
        let waits = delivered.is_some();
        let record = delivered.as_ref().and_then(Delivered::record);
        self.run.comes_next(NextUserMessage { record, delivered });
        waits
    }

    /// There is no run any more. What it took out of a queue and did not store waits again.
    async fn finish_run(&mut self) -> Option<FinishedRun> {
        let mut finished = self.run.finish()?;
        if let Some(undelivered) = finished.undelivered.take() {
            self.wait_again(undelivered).await;
        }
        Some(finished)
    }

    /// A message that was taken out of its queue is no entry.
    async fn wait_again(&mut self, delivered: Delivered) {
        let about = self.queues.put_back(delivered, &self.feed);
        self.journal.intent_log().note(IntentRecord::Queued(about)).await;
    }
}
