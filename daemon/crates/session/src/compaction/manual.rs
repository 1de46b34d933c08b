//! The command `compact`: a compaction beside which nothing else works on the conversation.

use std::{panic::AssertUnwindSafe, sync::Arc, sync::atomic::Ordering};

use agentd_protocol::{
    command::CompactParams,
    compaction::{CompactionReason, CompactionResult},
    error::{ErrorCode, Failure},
    event::{CompactionEnd, CompactionStart, Event},
};
use futures::FutureExt;

use super::{
    CompactionError, CompactionOrder, CompactionPolicy, CompactionWorker, PlanRequest, WORK,
    slot::SummaryEnding,
};
use crate::{
    abort::AbortWaiter, actor::Actor, choice::Choice, feed::Feed, reply::Reply, run_message::RunMessage,
};

impl Actor {
    /// Compacts now, or, while a run is active, when that has been aborted.
    pub(crate) fn compact(&mut self, params: CompactParams, reply: Reply) {
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
    pub(crate) fn start_compaction(&mut self, params: CompactParams, reply: Reply) {
        if self.compacting.is_asked_for() {
            let failure = Failure::new(ErrorCode::Busy, "A compaction is already in progress.");
            return reply.fail(&self.feed, failure.hint("Wait for its end, or stop it with abort."));
        }
        let worker = self.begin_summary(reply);
        self.publish(&CompactionStart { reason: CompactionReason::Manual }.into());
        let choice = self.chooser.current();
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(manual(&worker, choice, params)).catch_unwind().await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a compaction panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            // Without the actor there is nobody to tell.
            let _ = worker.to_actor.send(RunMessage::Compacted(Box::new(result))).await;
        });
    }

    /// The compaction of a command ended: says so, and answers who waited.
    pub(crate) async fn on_compacted(&mut self, result: Result<CompactionResult, CompactionError>) {
        let stopped = result == Err(CompactionError::Cancelled);
        let event = end(CompactionReason::Manual, &result, false);
        // Idle first: whoever asks once the event is out must be told so.
        self.abort.disarm();
        let Some(ending) = self.compacting.finish(stopped) else { return };
        self.publish(&event);
        self.answer_ending(ending, |reply, feed| reply.result(feed, result.map_err(Failure::from))).await;
    }

    /// Takes the place of the summary that a command asks for, which must be free while no run is active; gives what works
    /// on it.
    pub(super) fn begin_summary(&mut self, reply: Reply) -> CompactionWorker {
        let cancel = self.compacting.begin(reply);
        self.abort.arm(cancel.clone());
        CompactionWorker { context: Arc::clone(&self.context), to_actor: self.to_actor.clone(), cancel }
    }

    /// Frees that place, and answers everyone.
    pub(super) async fn end_summary(&mut self, stopped: bool, answer: impl FnOnce(Reply, &Feed)) {
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
    pub(crate) async fn set_auto_compaction(&mut self, enabled: bool, reply: Reply) {
        self.context.auto_compaction.store(enabled, Ordering::Relaxed);
        let saved = self.context.save_setting(&["compaction", "enabled"], &enabled).await;
        reply.outcome(&self.feed, saved);
    }
}

async fn manual(
    worker: &CompactionWorker,
    choice: Choice,
    params: CompactParams,
) -> Result<CompactionResult, CompactionError> {
    check_model(worker, &choice).await?;
    let policy = CompactionPolicy::of(&worker.context.settings, true, &choice.model);
    let plan = worker.plan(PlanRequest { keep_recent: policy.keep_recent, overflow_retry: None }).await?;
    let order =
        CompactionOrder { reason: CompactionReason::Manual, plan, choice, focus: params.custom_instructions };
    worker.carry_out(order).await
}

/// Whether there is a model, and a key for it.
pub(super) async fn check_model(worker: &CompactionWorker, choice: &Choice) -> Result<(), CompactionError> {
    if choice.model.is_placeholder() {
        let failure = Failure::new(ErrorCode::NoModel, "No model selected.");
        let hint = "Choose one with set_model; agentctl doctor says what is missing where there is none.";
        return Err(CompactionError::NoModel(failure.hint(hint)));
    }
    tokio::select! {
        biased;
        () = worker.cancel.cancelled() => Err(CompactionError::Cancelled),
        checked = worker.context.check_model(&choice.model) => checked.map_err(CompactionError::NoModel),
    }
}

/// The event at the end of a compaction.
pub(crate) fn end(
    reason: CompactionReason,
    result: &Result<CompactionResult, CompactionError>,
    will_retry: bool,
) -> Event {
    let what = match reason {
        CompactionReason::Manual => "Compaction failed",
        CompactionReason::Threshold => "Auto-compaction failed",
        CompactionReason::Overflow => "Context overflow recovery failed",
    };
    let aborted = matches!(result, Err(CompactionError::Cancelled));
    let error = result.as_ref().err().filter(|_| !aborted);
    Event::from(CompactionEnd {
        reason,
        result: result.as_ref().ok().cloned(),
        aborted,
        will_retry: will_retry && result.is_ok(),
        error_message: error.map(|error| format!("{what}: {error}")),
    })
}
