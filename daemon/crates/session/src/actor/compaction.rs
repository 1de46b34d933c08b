//! The command `compact`, and the place of the one summary that a command asks for.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

use agentd_protocol::{
    command::CompactParams,
    compaction::{CompactionReason, CompactionResult},
    error::{ErrorCode, Failure},
    event::CompactionStart,
};
use futures::FutureExt;

use super::session_actor::Actor;
use crate::{
    abort::AbortWaiter,
    compaction::{CompactionError, CompactionMessage, CompactionWorker, SummaryEnding, WORK, end, manual},
    event_log::{Audience, Feed},
    message_sender::MessageSender,
    reply::Reply,
    run::RunMessage,
    summary_asker::SummaryAsker,
};

impl Actor {
    /// Compacts now, or, while a run is active, when that has been aborted.
    pub(super) fn compact(&mut self, params: CompactParams, asker: SummaryAsker) {
        if self.closing {
            let text = "The session is closing and takes no new work.";
            return asker.fail(&self.feed, Failure::new(ErrorCode::ShuttingDown, text));
        }
        if let Some(failure) = self.unflushed.failure() {
            return asker.fail(&self.feed, failure);
        }
        if let Some(AbortWaiter::Compact(params, asker)) = self.run.abort(AbortWaiter::Compact(params, asker))
        {
            self.start_compaction(params, asker);
        }
    }

    /// Starts the compaction; its end is answered by [`Actor::on_compacted`].
    pub(super) fn start_compaction(&mut self, params: CompactParams, asker: SummaryAsker) {
        if self.compacting.is_asked_for() {
            let failure = Failure::new(ErrorCode::Busy, "A compaction is already in progress.");
            return asker.fail(&self.feed, failure.hint("Wait for its end, or stop it with abort."));
        }
        let (worker, to_actor) = (self.begin_summary(asker), self.to_actor.clone());
        self.tell_extensions();
        let event = CompactionStart { reason: CompactionReason::Manual }.into();
        self.context.observe(&event);
        self.publish(&event);
        let choice = self.chooser.current();
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(manual(&worker, choice, params)).catch_unwind().await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a compaction panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            worker.tell_extensions(CompactionReason::Manual, &result, false).await;
            // Without the actor there is nobody to tell.
            let _ = to_actor.send(RunMessage::Compacted(Box::new(result))).await;
        });
    }

    /// The compaction of a command ended: says so, and answers who waited.
    pub(super) async fn on_compacted(&mut self, result: Result<CompactionResult, CompactionError>) {
        let stopped = result == Err(CompactionError::Cancelled);
        let event = end(CompactionReason::Manual, &result, false);
        self.context.observe(&event);
        // Idle before the event: a client that asks after the event has to see an idle session.
        self.abort.disarm();
        let Some(ending) = self.compacting.finish(stopped) else { return };
        self.tell_extensions();
        self.publish(&event);
        self.answer_ending(ending, |asker, feed| asker.result(feed, result.map_err(Failure::from))).await;
    }

    /// Takes the place of the summary that a command asks for, which must be free while no run is active; gives what works
    /// on it.
    pub(super) fn begin_summary(&mut self, asker: SummaryAsker) -> CompactionWorker {
        let cancel = self.compacting.begin(asker);
        self.abort.arm(cancel.clone());
        CompactionWorker {
            context: Arc::clone(&self.context),
            session: MessageSender::new(&self.to_actor, RunMessage::Compaction),
            cancel,
        }
    }

    /// Frees that place, and answers everyone.
    pub(super) async fn end_summary(&mut self, stopped: bool, answer: impl FnOnce(SummaryAsker, &Feed)) {
        self.abort.disarm();
        if let Some(ending) = self.compacting.finish(stopped) {
            self.tell_extensions();
            self.answer_ending(ending, answer).await;
        }
    }

    async fn answer_ending(&mut self, ending: SummaryEnding, answer: impl FnOnce(SummaryAsker, &Feed)) {
        let SummaryEnding { asker, aborting, waiting } = ending;
        answer(asker, &self.feed);
        for aborting in aborting {
            self.answer_abort(aborting, vec![WORK]);
        }
        for (params, request) in waiting {
            self.take_prompt(params, request).await;
        }
        self.tell_idle();
    }

    /// The switch counts at once, also when it cannot be saved; that is then said.
    pub(super) async fn set_auto_compaction(&mut self, enabled: bool, reply: Reply) {
        self.context.auto_compaction.store(enabled, Ordering::Relaxed);
        let saved = self.context.save_setting(&["compaction", "enabled"], &enabled).await;
        reply.outcome(&self.feed, saved);
    }

    /// A task that compacts, or summarises a branch, asks or tells something.
    pub(super) async fn on_compaction_message(&mut self, message: CompactionMessage) {
        match message {
            CompactionMessage::Plan { request, reply } => {
                let _ = reply.send(self.journal.plan_compaction(request));
            }
            CompactionMessage::Store { entry, stored } => {
                let result = self.journal.append_compaction(&entry).await;
                self.tell_extensions();
                let _ = stored.send(result);
            }
            CompactionMessage::StoreContext { message, stored } => {
                if let Err(failure) = self.store_custom(*message).await {
                    tracing::error!(
                        error = failure.error,
                        "what a hook says after a compaction could not be stored"
                    );
                }
                let _ = stored.send(());
            }
            CompactionMessage::Branch { reply } => {
                let branch = self.journal.tree().branch();
                let _ = reply.send(branch.iter().filter_map(|entry| entry.json().ok()).collect());
            }
            CompactionMessage::Publish(line) => self.feed.publish([line]),
            CompactionMessage::PublishToIntroduced(line) => self.feed.publish_for(Audience::Introduced, line),
        }
    }
}
