//! The loop of the task that owns a session: the only writer of its file, the only source of its events.
//!
//! It waits for the disk and for room in the feed, never for a model, a process or a client: those work in tasks of
//! their own and send run messages.

use agentd_agent::HostError;
use agentd_extensions::EventKind;
use agentd_protocol::{command::Disposition, session::QueueMode};
use bytes::Bytes;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{mcp::changed, session_actor::Actor};
use crate::{
    event_log::Audience,
    inbox::Inbox,
    messages::InboxMessage,
    recovery::AfterCrash,
    run::{ContextFill, ModelInputs, RUN_MESSAGES_AT_ONCE, RunMessage},
    unload::{Unloaded, Unloading},
};

/// Commands that are taken before running work gets its turn again.
const COMMANDS_AT_ONCE: usize = 16;

/// Why the loop ended.
pub(super) enum Ended {
    /// The session is closed, and so is its feed.
    Closed,
    /// The session is unloaded; the registry is answered once the loop is gone, and with it the lock on the file.
    Unloading(Unloaded, Unloading),
}

impl Actor {
    /// Runs until the session is closed or unloaded.
    ///
    /// What a command and a run message need while they are handled is on the heap, since a session that does nothing needs none of it:
    /// the loop's own future lasts as long as the session is in memory.
    pub(super) async fn run(
        mut self: Box<Self>,
        inbox: &mut mpsc::Receiver<InboxMessage>,
        mut from_tasks: mpsc::Receiver<RunMessage>,
        closing: CancellationToken,
        after_crash: AfterCrash,
    ) -> Ended {
        let idle_after = self.idle_after();
        let mut last_work = Instant::now();
        let idle = sleep(idle_after.unwrap_or_default());
        tokio::pin!(idle);
        let (mut taken, mut inbox) = (Vec::new(), Inbox::new(inbox));
        let background = self.context.background.clone();
        // A client may have unregistered tools while the session was not in memory.
        self.tell_tools();
        Box::pin(self.restore_jobs()).await;
        self.after_crash(after_crash);
        self.ask_trust_again();
        loop {
            self.wait_for_room(&mut inbox, &closing).await;
            // Unbiased: neither a flood of commands nor a fast model keeps the other waiting. An abort needs no
            // precedence here: it goes by the switch.
            let mut is_work = true;
            tokio::select! {
                is_there = inbox.ready(COMMANDS_AT_ONCE) => {
                    if !is_there {
                        break;
                    }
                    is_work = false;
                }
                _ = from_tasks.recv_many(&mut taken, RUN_MESSAGES_AT_ONCE) => {}
                Some(_) = self.tasks.join_next() => {}
                () = self.tools.registry().changed() => self.tell_tools(),
                () = changed(self.context.mcp.as_ref()) => {
                    self.tell_mcp_servers();
                    Box::pin(self.tell_commands()).await;
                }
                Some(request) = self.extension_requests.1.recv() => {
                    self.extension_backlog.push_back(request);
                    // What the run sent before comes before.
                    while let Ok(message) = from_tasks.try_recv() {
                        taken.push(message);
                    }
                }
                () = self.queues.due() => self.queues.publish_untold(&self.feed),
                process = background.next_end() => Box::pin(self.on_process_end(&process)).await,
                // Reset only when it has fired: that is cheaper than at every event.
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
            for _ in 0..COMMANDS_AT_ONCE {
                // Answers can be long: wait for room before each.
                self.wait_for_room(&mut inbox, &closing).await;
                let Some(message) = inbox.take() else { break };
                // A session that is only looked at stays idle.
                is_work |= !matches!(message, InboxMessage::Activity(_));
                match message {
                    InboxMessage::Command(request) => {
                        let (command, reply) = *request;
                        self.tell_early_notices();
                        Box::pin(self.on_command(command, reply)).await;
                        self.show_summary();
                    }
                    InboxMessage::Attach { since_seq, before, joined } => {
                        self.attach(since_seq, before, joined);
                    }
                    InboxMessage::Copy { point, copied } => {
                        // The asker may have left.
                        let _ = copied.send(self.copy(point));
                    }
                    InboxMessage::Reopen(reopening, done) => {
                        let outcome = Box::pin(self.reopen(reopening.asked, reopening.if_idle)).await;
                        self.show_summary();
                        // The asker may have left.
                        let _ = done.send(outcome);
                    }
                    InboxMessage::UiResponse(answer) => self.on_ui_response(answer.0, answer.1, answer.2),
                    InboxMessage::Tools(message) => self.on_tools(*message),
                    InboxMessage::AskTrust => {
                        self.ask_trust();
                        self.ask_to_deliver();
                    }
                    InboxMessage::LogIn(login) => self.log_in(*login),
                    InboxMessage::Activity(done) => self.tell_activity(done),
                    InboxMessage::WhenIdle(done) => self.when_idle(done),
                    InboxMessage::Header(header) => {
                        // The asker may have left.
                        let _ = header.send(self.journal.tree().header().line().into());
                    }
                    InboxMessage::Unload(unloading) => {
                        self.retry_failed_writes().await;
                        // A session that is loaded again must not find the end of its own run in the intent log.
                        self.journal.intent_log().close().await;
                        // Nor may a run message be lost.
                        match self.unloaded().await.filter(|_| from_tasks.is_empty()) {
                            Some(unloaded) => {
                                let (received, inbox) = inbox.into_parts();
                                self.refuse_late(received, inbox).await;
                                self.clients.release_session();
                                return Ended::Unloading(unloaded, unloading);
                            }
                            None => {
                                let _ = unloading.send(None);
                            }
                        }
                    }
                    InboxMessage::AskLeaving(leaving, asked) => {
                        // The asker may have left.
                        let _ = asked.send(self.answer_leaving(&leaving));
                    }
                    InboxMessage::Begin(beginning) => Box::pin(self.begin(*beginning)).await,
                    InboxMessage::CarryOut(plan, begun) => {
                        // The asker may have left.
                        let _ = begun.send(Box::pin(self.carry_out(*plan)).await);
                    }
                    InboxMessage::Stay(command) => self.go_on_with(*command),
                    InboxMessage::GiveHosts(end) => self.give_hosts(*end),
                    InboxMessage::Close(end) => {
                        let (received, inbox) = inbox.into_parts();
                        Box::pin(self.close(received, inbox, &mut from_tasks, end)).await;
                        return Ended::Closed;
                    }
                }
            }
            if is_work {
                last_work = Instant::now();
            }
            self.on_run_messages(&mut taken).await;
            self.take_extension_requests().await;
            if !self.run.is_active() {
                // An idle session keeps no memory for run messages.
                taken = Vec::new();
            }
        }
        let (received, inbox) = inbox.into_parts();
        Box::pin(self.close(received, inbox, &mut from_tasks, None)).await;
        Ended::Closed
    }

    /// Waits while slow subscribers leave no room in the feed: the only place where they hold the session up. A
    /// session that is being closed does not wait, nor does work that is being stopped: its last events are few, and a
    /// client waits for the answer. Read-only commands of other clients are answered meanwhile.
    async fn wait_for_room(&mut self, inbox: &mut Inbox<'_>, closing: &CancellationToken) {
        while !closing.is_cancelled() && !self.feed.has_room() {
            self.answer_messages_while_full();
            if let Some((command, reply)) = inbox.take_look(&self.feed) {
                Box::pin(self.on_command(command, reply)).await;
                continue;
            }
            let pressed = self.abort.pressed();
            if self.is_stopping() && self.feed.has_room_to_stop() {
                return;
            }
            tokio::select! {
                () = self.feed.room() => {}
                () = closing.cancelled() => {}
                // An abort command is on its way.
                () = pressed => {}
                () = inbox.receive(COMMANDS_AT_ONCE), if inbox.may_receive() => {}
            }
        }
    }

    /// Whether work is being stopped, or an abort command is on its way.
    fn is_stopping(&self) -> bool {
        self.abort.is_stopping()
            || self.run.is_cancelled()
            || self.compacting.is_cancelled()
            || self.aborting_all > 0
    }

    /// Takes run messages in order; consecutive events are published together.
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
            Box::pin(self.on_run_message(message)).await;
        }
        if !events.is_empty() {
            self.feed.publish(events);
        }
    }

    /// What is seldom or once in a run is boxed: this future is made for each message, and is as large as the largest of them.
    pub(super) async fn on_run_message(&mut self, message: RunMessage) {
        match message {
            RunMessage::Publish(line) | RunMessage::BashOutput { event: line } => self.feed.publish([line]),
            RunMessage::Tell(line) => self.feed.publish_for(Audience::Introduced, line),
            RunMessage::Store { message, event, intents, stored } => {
                let result = self.store(message, event, *intents).await;
                self.record_unsaid().await;
                self.tell_extensions();
                let _ = stored.send(result);
            }
            RunMessage::Next { kind, reply } => {
                self.tell_between_turns();
                self.store_custom_of_turn().await;
                let mut next = self.queues.next(kind);
                let mut custom = self.custom.next(kind);
                if self.queues.mode(kind) == QueueMode::OneAtATime {
                    // Those of extensions count as those of users do.
                    custom.truncate(usize::from(next.is_empty()));
                }
                next.extend(custom);
                let _ = reply.send(next);
            }
            RunMessage::Deliver { ticket, reply } => {
                let waits = match self.custom.deliver(ticket) {
                    Some(waits) => waits,
                    None => self.deliver(ticket),
                };
                self.tell_extensions();
                let _ = reply.send(waits);
            }
            RunMessage::Context { reply } => {
                let extensions = self.context.extensions.as_ref();
                let sees = extensions.is_some_and(|it| it.listens(EventKind::BeforeAgentStart));
                let snapshot = ModelInputs {
                    declarable: if sees { self.tools.declarable(&self.context.tools) } else { Vec::new() },
                    messages: self.journal.messages().to_vec(),
                    choice: self.chooser.in_use(),
                    leaf: self.journal.tree().leaf_id().map(str::to_owned),
                    tools: self.tools.current(&self.context.tools),
                    context: std::sync::Arc::clone(&self.context),
                    route_state: self.route_state(),
                };
                let _ = reply.send(snapshot);
            }
            RunMessage::KeepRoute { data, kept } => {
                let _ = kept.send(Box::pin(self.keep_route(*data)).await);
            }
            RunMessage::Tools { reply } => {
                let _ = reply.send(self.tools.current(&self.context.tools));
            }
            RunMessage::ToolRequest(request) => request.send(),
            RunMessage::Accepted => Box::pin(self.on_accepted()).await,
            RunMessage::Refused(failure) => Box::pin(self.on_refused(failure)).await,
            RunMessage::Started(line) => {
                self.run.begin();
                self.begin_agent_run();
                self.feed.publish([line]);
                self.tell_extensions();
            }
            RunMessage::Ended(line) => {
                self.run.end();
                self.agent_run = None;
                self.feed.publish([line]);
                self.tell_extensions();
            }
            RunMessage::OmitFailed { which, omitted } => {
                let result = Box::pin(self.omit_failed(which)).await;
                let _ = omitted.send(result);
            }
            RunMessage::RulesTold { rules, follow_up, done } => {
                let result = Box::pin(self.on_rules_told(rules, follow_up)).await;
                let _ = done.send(result);
            }
            RunMessage::FallBack { substitute, done } => {
                let result = Box::pin(self.fall_back(*substitute)).await;
                let _ = done.send(result.map_err(|failure| HostError::NotStored(failure.error)));
            }
            RunMessage::BudgetReached { reached, done } => {
                Box::pin(self.tell_budget(&reached)).await;
                let _ = done.send(());
            }
            RunMessage::Boundary(message) => Box::pin(self.on_boundary(*message)).await,
            RunMessage::UseTools { names, done } => {
                if let Err(failure) = Box::pin(self.use_known_tools(&names)).await {
                    tracing::error!(error = failure.error, "the tools of an extension could not be recorded");
                }
                let _ = done.send(self.tools.current(&self.context.tools));
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
            RunMessage::Compaction(message) => Box::pin(self.on_compaction_message(message)).await,
            RunMessage::CompactionStarted(line) => {
                self.compacting.in_run = true;
                self.tell_extensions();
                self.feed.publish([line]);
            }
            RunMessage::CompactionEnded(line) => {
                self.record_unsaid().await;
                self.compacting.in_run = false;
                self.tell_extensions();
                self.feed.publish([line]);
            }
            RunMessage::Compacted(result) => {
                self.record_unsaid().await;
                Box::pin(self.on_compacted(*result)).await;
            }
            RunMessage::BranchLeft(result) => {
                self.record_unsaid().await;
                Box::pin(self.on_branch_left(*result)).await;
            }
            RunMessage::Pause(pause) => self.run.set_pause(pause),
            RunMessage::InFlight(in_flight) => self.show_in_flight(Some(in_flight)),
            RunMessage::ToolsStopped(calls) => self.on_tools_stopped(calls),
            RunMessage::AllAborted { reply, ended, is_late } => self.on_all_aborted(*reply, ended, is_late),
            RunMessage::Ui(message) => self.on_ui_message(*message),
            RunMessage::PlanApproved(approval) => Box::pin(self.on_plan_approved(*approval)).await,
            RunMessage::Decided(record) => Box::pin(self.on_decided(*record)).await,
            RunMessage::GoOn(yes) => self.on_go_on(yes),
            RunMessage::Deliverable(yes) => self.on_deliverable(yes),
            RunMessage::Trusted(reconfigured) => Box::pin(self.on_trusted(reconfigured)).await,
            RunMessage::Expanded(expanded) => Box::pin(self.on_expanded(*expanded)).await,
            RunMessage::TemplateFilled(filled) => Box::pin(self.on_template_filled(*filled)).await,
            RunMessage::ExtensionsAsked => Box::pin(self.take_extension_requests()).await,
            RunMessage::HooksBegan(context) => Box::pin(self.on_hooks_began(context)).await,
            RunMessage::PromptJudged(judged) => {
                Box::pin(self.on_prompt_judged(*judged)).await;
                self.show_summary();
            }
            RunMessage::InputSeen(seen) => {
                Box::pin(self.take_extension_requests()).await;
                Box::pin(self.on_input_seen(*seen)).await;
            }
            RunMessage::ExtensionsLoaded(loaded) => {
                Box::pin(self.take_extension_requests()).await;
                Box::pin(self.on_extensions_loaded(loaded)).await;
            }
            RunMessage::Move(asked) => self.lead_elsewhere(*asked),
            RunMessage::ExtensionsRenewed(reply) => self.on_extensions_renewed(*reply),
            RunMessage::CommandRan(number) => {
                Box::pin(self.take_extension_requests()).await;
                if let Some(command) = self.command_runs.take(number) {
                    self.accept(command.request, Disposition::Handled);
                }
                self.quit_when_idle();
            }
            RunMessage::Beginning { told } => {
                self.begin_agent_run();
                self.tell_extensions();
                let _ = told.send(());
            }
            RunMessage::Settling { told } => {
                self.settling = true;
                self.tell_extensions();
                let _ = told.send(());
            }
            RunMessage::Settled => {
                self.settling = false;
                self.record_unsaid().await;
                Box::pin(self.on_settled()).await;
            }
            RunMessage::NotStored => Box::pin(self.on_not_stored()).await,
            RunMessage::Broken => Box::pin(self.on_broken()).await,
            RunMessage::CellCall(call) => self.on_cell_call(*call),
            RunMessage::Job(message) => Box::pin(self.on_job_message(*message)).await,
            RunMessage::Subagent(message) => Box::pin(self.on_subagent_message(*message)).await,
            RunMessage::Checkpoint(checkpoint) => Box::pin(self.on_checkpoint(*checkpoint)).await,
            RunMessage::CheckpointsHandled(handled) => {
                // The client may have left.
                let _ = handled.send(());
            }
            RunMessage::BashEnded(end) => Box::pin(self.on_bash_end(*end)).await,
        }
        self.show_summary();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future of [`Actor::run`].
    fn size<'a, F: Future>(
        _: impl FnOnce(
            Box<Actor>,
            &'a mut mpsc::Receiver<InboxMessage>,
            mpsc::Receiver<RunMessage>,
            CancellationToken,
            AfterCrash,
        ) -> F,
    ) -> usize {
        size_of::<F>()
    }

    /// Each session in memory has one of each: of the messages, one for each place in a block of the channel.
    #[test]
    fn what_lasts_as_long_as_a_session_is_small() {
        assert!(size(Actor::run) <= 4 << 10, "{} bytes", size(Actor::run));
        assert!(size_of::<RunMessage>() <= 64, "{} bytes", size_of::<RunMessage>());
    }
}
