//! The command `compact`, and the part of `navigate_tree` that summarises the branch that is left.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

use agentd_protocol::{
    command::{CompactParams, Navigated},
    compaction::{CompactionReason, CompactionResult},
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::CompactionStart,
};
use agentd_store::NavigationTarget;
use futures::FutureExt;

use super::session_actor::Actor;
use crate::{
    abort::AbortWaiter,
    compaction::{
        CompactionError, CompactionMessage, CompactionWorker, SummaryEnding, WORK, branch_budget, end,
        manual, plan_branch, summarise_branch,
    },
    event_log::{Audience, Feed},
    message_sender::MessageSender,
    reply::Reply,
    run::RunMessage,
};

impl Actor {
    /// Compacts now, or, while a run is active, when that has been aborted.
    pub(super) fn compact(&mut self, params: CompactParams, reply: Reply) {
        if self.closing {
            let text = "The session is closing and takes no new work.";
            return reply.fail(&self.feed, Failure::new(ErrorCode::ShuttingDown, text));
        }
        if let Some(failure) = self.unflushed.failure() {
            return reply.fail(&self.feed, failure);
        }
        if let Some(AbortWaiter::Compact(params, reply)) = self.run.abort(AbortWaiter::Compact(params, reply))
        {
            self.start_compaction(params, reply);
        }
    }

    /// Starts the compaction; its end is answered by [`Actor::on_compacted`].
    pub(super) fn start_compaction(&mut self, params: CompactParams, reply: Reply) {
        if self.compacting.is_asked_for() {
            let failure = Failure::new(ErrorCode::Busy, "A compaction is already in progress.");
            return reply.fail(&self.feed, failure.hint("Wait for its end, or stop it with abort."));
        }
        let (worker, to_actor) = (self.begin_summary(reply), self.to_actor.clone());
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
        self.publish(&event);
        self.answer_ending(ending, |reply, feed| reply.result(feed, result.map_err(Failure::from))).await;
    }

    /// Takes the place of the summary that a command asks for, which must be free while no run is active; gives what works
    /// on it.
    fn begin_summary(&mut self, reply: Reply) -> CompactionWorker {
        let cancel = self.compacting.begin(reply);
        self.abort.arm(cancel.clone());
        CompactionWorker {
            context: Arc::clone(&self.context),
            session: MessageSender::new(&self.to_actor, RunMessage::Compaction),
            cancel,
        }
    }

    /// Frees that place, and answers everyone.
    async fn end_summary(&mut self, stopped: bool, answer: impl FnOnce(Reply, &Feed)) {
        self.abort.disarm();
        if let Some(ending) = self.compacting.finish(stopped) {
            self.answer_ending(ending, answer).await;
        }
    }

    async fn answer_ending(&mut self, ending: SummaryEnding, answer: impl FnOnce(Reply, &Feed)) {
        let SummaryEnding { reply, aborting, waiting } = ending;
        answer(reply, &self.feed);
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

    /// Goes on at `landing` once what is left behind is summarised; at once where nothing is. While that works, it is as with
    /// a compaction: prompts are refused, and an abort stops it.
    pub(super) fn leave_with_summary(
        &mut self,
        landing: NavigationTarget,
        focus: Option<String>,
        reply: Reply,
    ) {
        let choice = self.chooser.current();
        let budget = branch_budget(&self.context.settings, &choice.model);
        let Some(branch) = plan_branch(self.journal.tree(), landing.leaf.as_deref(), budget) else {
            let result = self.land(landing);
            return reply.result(&self.feed, result);
        };
        let (worker, to_actor) = (self.begin_summary(reply), self.to_actor.clone());
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(summarise_branch(&worker, branch, &choice, focus.as_deref()))
                .catch_unwind()
                .await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a summary of a branch panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            // Without the actor there is nobody to tell.
            let _ = to_actor.send(RunMessage::BranchSummarised(Box::new((landing, result)))).await;
        });
    }

    /// The summary of a branch is there: moves, and adds it. Without one, nothing has changed.
    pub(super) async fn on_branch_summarised(
        &mut self,
        landing: NavigationTarget,
        result: Result<EntryBody, CompactionError>,
    ) {
        let stopped = result == Err(CompactionError::Cancelled);
        let leaf_id = || self.journal.tree().leaf_id().map(str::to_owned);
        let outcome = match result {
            Ok(summary) => self.land_with(landing, &summary).await,
            Err(CompactionError::Cancelled) => Ok(Navigated {
                cancelled: true,
                editor_text: None,
                summary_entry_id: None,
                leaf_id: leaf_id(),
            }),
            Err(error) => Err(Failure::from(error)),
        };
        self.end_summary(stopped, |reply, feed| reply.result(feed, outcome)).await;
    }

    async fn land_with(
        &mut self,
        landing: NavigationTarget,
        summary: &EntryBody,
    ) -> Result<Navigated, Failure> {
        let before = self.journal.tree().leaf_id().map(str::to_owned);
        let navigated = self.land(landing)?;
        if let Err(failure) = self.journal.append(summary).await {
            // The leaf was there a moment ago.
            if let Err(error) = self.journal.set_leaf(before.as_deref()) {
                tracing::error!(%error, "the conversation could not go back to its branch");
            }
            self.restore_todos();
            return Err(failure);
        }
        let id = self.journal.tree().leaf_id().map(str::to_owned);
        Ok(Navigated { summary_entry_id: id.clone(), leaf_id: id, ..navigated })
    }

    /// A task that compacts, or summarises a branch, asks or tells something.
    pub(super) async fn on_compaction_message(&mut self, message: CompactionMessage) {
        match message {
            CompactionMessage::Plan { request, reply } => {
                let _ = reply.send(self.journal.plan_compaction(request));
            }
            CompactionMessage::Store { entry, stored } => {
                let _ = stored.send(self.journal.append_compaction(&entry).await);
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
