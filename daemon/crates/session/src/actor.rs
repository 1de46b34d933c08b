//! The loop that owns a session: the only writer of its file, the only source of its events.
//!
//! It waits for the disk and for room in the feed, never for a model, a process or a client: those work in tasks of
//! their own and send steps.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agentd_agent::{HostError, StoppedCall};
use agentd_files::fail_point::{self, Point};
use agentd_protocol::{
    Json,
    command::{Disposition, Work},
    error::{ErrorCode, Failure},
    event::{AgentSettled, EntryAppended, Event},
    message::Message as TranscriptMessage,
    session::InterruptMode,
};
use bytes::Bytes;
use futures::FutureExt;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    attach::AttachQueue,
    choice::Chooser,
    compaction::Compacting,
    context::SessionContext,
    event_log::Audience,
    feed::Feed,
    handle::{AbortSwitch, Message},
    inbox::Inbox,
    intent_log::Intents,
    journal::Journal,
    models_file::ModelsFile,
    queues::{Delivered, SessionQueues},
    recovery::{AfterCrash, HeldMessages, ResumeQuestion, UnflushedWrites},
    reply::{Reply, encode},
    requests::{IdempotencyCache, PendingRequest, RequestRecord},
    run::{OpenEvents, Prompt, RunBeginning, RunChannels},
    run_message::{ContextFill, FailedAnswer, ModelInputs, RUN_MESSAGES_AT_ONCE, RunMessage},
    run_slot::{FinishedRun, NextUserMessage, RunSlot},
    summary::SummaryCell,
    survivors::DetachedCalls,
    tools::SessionTools,
    trust::ProjectTrust,
    ui::PendingDialogs,
    unload::{Unloaded, Unloading},
    user_bash::UserBash,
};

/// How many commands are taken before running work gets its turn again.
const COMMANDS_AT_ONCE: usize = 16;

/// A session, as its own task sees it. The fields are the concerns; the command families in the sibling modules work
/// on them.
pub(crate) struct Actor {
    pub(crate) context: Arc<SessionContext>,
    pub(crate) feed: Feed,
    pub(crate) journal: Journal,
    pub(crate) queues: SessionQueues,
    pub(crate) chooser: Chooser,
    /// Whether models.json has changed since it was read.
    pub(crate) models_file: ModelsFile,
    pub(crate) run: RunSlot,
    pub(crate) compacting: Compacting,
    pub(crate) user_bash: UserBash,
    pub(crate) abort: AbortSwitch,
    pub(crate) to_actor: mpsc::Sender<RunMessage>,
    /// The run and the user's commands.
    pub(crate) tasks: JoinSet<()>,
    /// Who waits for the session to be idle.
    pub(crate) idle_waiters: Vec<oneshot::Sender<()>>,
    /// Who waits to be attached.
    pub(crate) joining: AttachQueue,
    pub(crate) summary: SummaryCell,
    /// Tool calls that were stopped, until the answer to that says so.
    pub(crate) stopped_tools: Vec<StoppedCall>,
    /// What ended with a run that was stopped before the command to do so was taken.
    pub(crate) stopped_run: Vec<Work>,
    /// Whether calls were stopped because of a steering message, until they have ended.
    pub(crate) tools_interrupted: bool,
    /// What a steering message does to tool calls.
    pub(crate) interrupt_mode: InterruptMode,
    /// Which commands a client may repeat without doing them again.
    pub(crate) requests: IdempotencyCache<Reply>,
    /// Whether it went back to another entry and no run has begun there yet.
    pub(crate) has_moved: bool,
    /// Questions to the user that nobody has answered yet.
    pub(crate) dialogs: PendingDialogs,
    /// What the model can call.
    pub(crate) tools: SessionTools,
    /// Whether the project's own settings count, and who was asked.
    pub(crate) trust: ProjectTrust,
    /// Whether the user is asked about a turn that a crash interrupted.
    pub(crate) going_on: ResumeQuestion,
    /// What waits in a session that is the project's.
    pub(crate) held_back: HeldMessages,
    /// What the run has told and not ended.
    pub(crate) open_events: OpenEvents,
    /// Tool calls that were stopped and do not end.
    pub(crate) survivors: DetachedCalls,
    /// How many aborts of everything have not been answered.
    pub(crate) aborting_all: usize,
    /// What could not be stored yet.
    pub(crate) unflushed: UnflushedWrites,
    /// Set once the session takes no new work.
    pub(crate) closing: bool,
}

/// How the loop came to its end.
pub(crate) enum Ended {
    /// Nothing works for the session any more, and its feed is closed.
    Closed,
    /// It left memory; whoever asked for that is to be told once the loop is gone, its lock on the file included.
    Unloading(Unloaded, Unloading),
}

impl Actor {
    /// Works until the session is closed or leaves memory.
    pub(crate) async fn run(
        mut self,
        inbox: &mut mpsc::Receiver<Message>,
        mut from_tasks: mpsc::Receiver<RunMessage>,
        closing: CancellationToken,
        after_crash: AfterCrash,
    ) -> Ended {
        let idle_after = self.context.services.limits.idle_after;
        let mut last_work = Instant::now();
        let idle = sleep(idle_after.unwrap_or_default());
        tokio::pin!(idle);
        let (mut taken, mut inbox) = (Vec::new(), Inbox::new(inbox));
        let background = self.context.background.clone();
        // A client may have taken its tools away while the session was not in memory.
        self.tell_tools();
        self.after_crash(after_crash);
        self.ask_trust_again();
        loop {
            self.wait_for_room(&mut inbox, &closing).await;
            // Unbiased: neither a flood of commands nor a fast model keeps the other waiting. An abort needs no
            // precedence here, it goes by the switch.
            tokio::select! {
                is_there = inbox.ready(COMMANDS_AT_ONCE) => {
                    if !is_there {
                        break;
                    }
                }
                _ = from_tasks.recv_many(&mut taken, RUN_MESSAGES_AT_ONCE) => {}
                Some(_) = self.tasks.join_next() => {}
                () = self.tools.client_tools().changed() => self.tell_tools(),
                () = self.queues.due() => self.queues.publish_untold(&self.feed),
                process = background.next_end() => self.on_process_end(&process),
                // Set again only when it has fired: that is cheaper than at every event.
                () = &mut idle, if idle_after.is_some() => {
                    let idle_after = idle_after.unwrap_or_default();
                    if last_work.elapsed() >= idle_after {
                        last_work = Instant::now();
                        self.retry_failed_writes().await;
                        if self.is_quiet() {
                            self.context.services.watch.idle(&self.context.session_id);
                        }
                    }
                    idle.as_mut().reset(last_work + idle_after);
                    continue;
                }
            }
            last_work = Instant::now();
            for _ in 0..COMMANDS_AT_ONCE {
                // Answers can be long: each waits until the ones before it are taken.
                self.wait_for_room(&mut inbox, &closing).await;
                let Some(message) = inbox.take() else { break };
                match message {
                    Message::Command(request) => {
                        let (command, reply) = *request;
                        self.on_command(command, reply).await;
                        self.show_summary();
                    }
                    Message::Attach { since_seq, joined } => self.attach(since_seq, joined),
                    Message::Copy { point, copied } => {
                        // Whoever asked may have left.
                        let _ = copied.send(self.copy(point));
                    }
                    Message::Reopen(reopening, done) => {
                        let outcome = self.reopen(reopening.asked, reopening.if_idle).await;
                        self.show_summary();
                        // Whoever asked may have left.
                        let _ = done.send(outcome);
                    }
                    Message::UiResponse(answer) => self.on_ui_response(answer.0, answer.1, answer.2),
                    Message::Tools(message) => self.on_tools(*message),
                    Message::AskTrust => {
                        self.ask_trust();
                        self.ask_to_deliver();
                    }
                    Message::WhenIdle(done) => self.when_idle(done),
                    Message::Header(header) => {
                        // As above.
                        let _ = header.send(self.journal.tree().header().line().into());
                    }
                    Message::Unload(unloading) => {
                        self.retry_failed_writes().await;
                        // What comes back must not meet the end of its own run.
                        self.journal.intent_log().settled().await;
                        // Nor is what was said to be lost.
                        match self.unloaded().await.filter(|_| from_tasks.is_empty()) {
                            Some(unloaded) => {
                                let (received, inbox) = inbox.into_parts();
                                self.refuse_late(received, inbox).await;
                                return Ended::Unloading(unloaded, unloading);
                            }
                            None => {
                                let _ = unloading.send(None);
                            }
                        }
                    }
                    Message::Close => {
                        let (received, inbox) = inbox.into_parts();
                        self.close(received, inbox, &mut from_tasks).await;
                        return Ended::Closed;
                    }
                }
            }
            self.on_run_messages(&mut taken).await;
            if !self.run.is_active() {
                // A session that waits for its user keeps no room for work.
                taken = Vec::new();
            }
        }
        let (received, inbox) = inbox.into_parts();
        self.close(received, inbox, &mut from_tasks).await;
        Ended::Closed
    }

    /// Subscribers that take nothing hold the session up here, and nowhere else. A session that is being closed does not
    /// wait for them, nor does work that is being stopped: its end is little, and somebody waits for the answer. Commands that
    /// only look are answered meanwhile, where the answer goes to somebody else: nothing waits behind them, and nobody is cut
    /// off for them.
    async fn wait_for_room(&mut self, inbox: &mut Inbox<'_>, closing: &CancellationToken) {
        while !closing.is_cancelled() && !self.feed.has_room() {
            if let Some((command, reply)) = inbox.take_look(&self.feed) {
                self.on_command(command, reply).await;
                continue;
            }
            let pressed = self.abort.pressed();
            if self.is_stopping() && self.feed.has_room_to_stop() {
                return;
            }
            tokio::select! {
                () = self.feed.room() => {}
                () = closing.cancelled() => {}
                // An abort is on its way here.
                () = pressed => {}
                () = inbox.receive(COMMANDS_AT_ONCE), if inbox.may_receive() => {}
            }
        }
    }

    /// Whether something is being stopped, or a command to do so is on its way.
    fn is_stopping(&self) -> bool {
        self.abort.is_stopping()
            || self.run.is_cancelled()
            || self.compacting.is_cancelled()
            || self.aborting_all > 0
    }

    /// Takes steps in order; the events among them go out together.
    async fn on_run_messages(&mut self, messages: &mut Vec<RunMessage>) {
        let mut events: Vec<Bytes> = Vec::new();
        for message in messages.drain(..) {
            if let RunMessage::Publish(line) | RunMessage::BashOutput { event: line } = message {
                events.push(line);
                continue;
            }
            if !events.is_empty() {
                self.feed.publish(events.drain(..));
            }
            self.on_run_message(message).await;
        }
        if !events.is_empty() {
            self.feed.publish(events);
        }
    }

    pub(crate) async fn on_run_message(&mut self, message: RunMessage) {
        match message {
            RunMessage::Publish(line) | RunMessage::BashOutput { event: line } => self.feed.publish([line]),
            RunMessage::Tell(line) => self.feed.publish_for(Audience::Introduced, line),
            RunMessage::Store { message, event, intents, stored } => {
                let result = self.store(message, event, intents).await;
                let _ = stored.send(result);
            }
            RunMessage::Next { kind, reply } => {
                let _ = reply.send(self.queues.next(kind));
            }
            RunMessage::Deliver { ticket, reply } => {
                let _ = reply.send(self.deliver(ticket));
            }
            RunMessage::Context { reply } => {
                let snapshot = ModelInputs {
                    messages: self.journal.messages().to_vec(),
                    choice: self.chooser.in_use(),
                    leaf: self.journal.tree().leaf_id().map(str::to_owned),
                    tools: self.tools.current(&self.context.tools),
                };
                let _ = reply.send(snapshot);
            }
            RunMessage::Tools { reply } => {
                let _ = reply.send(self.tools.current(&self.context.tools));
            }
            RunMessage::ToolRequest(request) => request.send(),
            RunMessage::Accepted => self.on_accepted().await,
            RunMessage::Refused(failure) => self.on_refused(failure).await,
            RunMessage::Started(line) => {
                self.run.begin();
                self.feed.publish([line]);
            }
            RunMessage::Ended(line) => {
                self.run.end();
                self.feed.publish([line]);
            }
            RunMessage::OmitFailed { which, omitted } => {
                let result = self.omit_failed(which).await;
                let _ = omitted.send(result);
            }
            RunMessage::FallBack { substitute, done } => {
                let result = self.fall_back(*substitute).await;
                let _ = done.send(result.map_err(|failure| HostError::NotStored(failure.error)));
            }
            RunMessage::Fullness { reply } => {
                let fullness = ContextFill {
                    tokens: self.journal.tokens(),
                    last: self.journal.last_answer().cloned(),
                    precedes_compaction: self.journal.answer_precedes_compaction(),
                    choice: self.chooser.in_use(),
                };
                let _ = reply.send(fullness);
            }
            RunMessage::PlanCompaction { request, reply } => {
                let _ = reply.send(self.journal.plan_compaction(request));
            }
            RunMessage::CompactionStarted(line) => {
                self.compacting.in_run = true;
                self.feed.publish([line]);
            }
            RunMessage::CompactionEnded(line) => {
                self.compacting.in_run = false;
                self.feed.publish([line]);
            }
            RunMessage::StoreCompaction { entry, stored } => {
                let _ = stored.send(self.journal.append_compaction(&entry).await);
            }
            RunMessage::Compacted(result) => self.on_compacted(*result).await,
            RunMessage::BranchSummarised(summarised) => {
                let (landing, result) = *summarised;
                self.on_branch_summarised(landing, result).await;
            }
            RunMessage::Pause(pause) => self.run.set_pause(pause),
            RunMessage::InFlight(in_flight) => self.show_in_flight(Some(in_flight)).await,
            RunMessage::ToolsStopped(calls) => self.on_tools_stopped(calls),
            RunMessage::AllAborted { reply, ended, is_late } => self.on_all_aborted(reply, ended, is_late),
            RunMessage::Ui(message) => self.on_ui_message(*message),
            RunMessage::GoOn(yes) => self.on_go_on(yes),
            RunMessage::Deliverable(yes) => self.on_deliverable(yes),
            RunMessage::Trusted(reconfigured) => self.on_trusted(reconfigured).await,
            RunMessage::Settled => self.on_settled().await,
            RunMessage::NotStored => self.on_not_stored().await,
            RunMessage::Broken => self.on_broken().await,
            RunMessage::BashEnded(end) => self.on_bash_end(*end).await,
        }
        self.show_summary();
    }

    /// Stores a message; then says so.
    async fn store(
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
                // Nothing came of the command, here as in the file.
                match (delivered, record) {
                    (Some(delivered), _) => self.wait_again(delivered).await,
                    (None, Some(RequestRecord { key, .. })) => self.requests.forget(&key),
                    (None, None) => {}
                }
                self.unflushed.keep(message);
                return Err(HostError::NotStored(error.to_string()));
            }
        };
        fail_point::hit(Point::SessionStored);
        self.feed.publish([event]);
        fail_point::hit(Point::SessionPublished);
        // The message is there; what was to follow it must not.
        stored.intended.map_err(|error| HostError::NotStored(error.to_string()))?;
        Ok(stored.entry)
    }

    /// Leaves the failed answer at the end of the context out of it; then says so.
    async fn omit_failed(&mut self, which: FailedAnswer) -> Result<(), HostError> {
        let omitted = self.journal.omit_failed(which).await;
        for entry in omitted.map_err(|error| HostError::NotStored(error.to_string()))? {
            self.publish(&EntryAppended { entry }.into());
        }
        Ok(())
    }

    /// Brings what lists say of the session up to date.
    pub(crate) fn show_summary(&mut self) {
        if self.summary.show(self.journal.tree(), self.run.is_active()) {
            self.context.services.watch.changed(&self.context.session_id);
        }
    }

    /// Publishes an event of the actor's own.
    pub(crate) fn publish(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish([line]),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    /// Publishes an event to those who said hello.
    pub(crate) fn publish_to_introduced(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish_for(Audience::Introduced, line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    /// Starts the run of a prompt. Its checks are part of the run: they read files and may run commands.
    pub(crate) fn start_run(&mut self, prompt: Prompt, request: PendingRequest) {
        self.going_on.give_up();
        self.start(RunBeginning::Prompt(prompt), Some(request));
    }

    /// Starts a run.
    pub(crate) fn start(&mut self, beginning: RunBeginning, request: Option<PendingRequest>) {
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
            environment,
        };
        self.tasks.spawn(async move {
            let run = crate::run::drive(context, beginning, channels);
            if AssertUnwindSafe(run).catch_unwind().await.is_err() {
                tracing::error!("a run panicked");
                // The actor may be gone too; then nobody waits for the run.
                let _ = to_actor.send(RunMessage::Broken).await;
            }
        });
    }

    async fn on_accepted(&mut self) {
        self.store_bash_messages().await;
        if let Some(request) = self.run.accept() {
            self.run.comes_next(NextUserMessage {
                record: request.record(Disposition::Started),
                delivered: None,
            });
            fail_point::hit(Point::SessionAccepted);
            self.accept(request, Disposition::Started);
            self.record_choice().await;
        }
    }

    /// The prompt failed its checks: there was no run, and no event says otherwise.
    async fn on_refused(&mut self, failure: Failure) {
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
        self.show_in_flight(None).await;
        self.after_run(finished).await;
    }

    pub(crate) async fn on_settled(&mut self) {
        self.store_bash_messages().await;
        // Idle first: whoever asks once the event is out must be told so.
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
        self.publish(&Event::from(AgentSettled { aborted: finished.aborted }));
        self.open_events.end();
        self.show_in_flight(None).await;
        self.after_run(finished).await;
    }

    /// Answers who waited for the end of a run, and starts what waited for it.
    async fn after_run(&mut self, finished: FinishedRun) {
        // A run that broke down says nothing of its end.
        self.compacting.in_run = false;
        self.answer_aborts(finished.aborting, finished.stopping, finished.aborted);
        for (params, request) in finished.waiting {
            match self.unflushed.failure() {
                None => self.take_prompt(params, request).await,
                Some(failure) => self.refuse(request, failure),
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

    /// Tells who waits for the session to be idle, if it is.
    pub(crate) fn tell_idle(&mut self) {
        if self.is_idle() {
            for waiter in self.idle_waiters.drain(..) {
                // Whoever waited may have left.
                let _ = waiter.send(());
            }
        }
    }

    fn when_idle(&mut self, done: oneshot::Sender<()>) {
        if self.is_idle() {
            let _ = done.send(());
        } else {
            self.idle_waiters.push(done);
        }
    }

    /// Whether nothing works for the session.
    pub(crate) fn is_idle(&self) -> bool {
        !self.run.is_active() && !self.compacting.is_active() && !self.user_bash.is_active()
    }
}
