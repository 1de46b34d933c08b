//! The command `compact`: a compaction beside which nothing else works on the conversation.

use std::{panic::AssertUnwindSafe, sync::Arc, sync::atomic::Ordering};

use agentd_protocol::{
    command::{CompactParams, Work, WorkKind},
    compaction::{CompactionReason, CompactionResult},
    error::{ErrorCode, Failure},
    event::{CompactionEnd, CompactionStart, Event},
};
use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{CompactionError, CompactionPolicy, Order, PlanRequest, Worker};
use crate::{abort::Aborting, actor::Actor, choice::Choice, reply::Reply, shared::Shared, step::Step};

/// The place of the session's compaction.
#[derive(Default)]
pub(crate) struct Compacting {
    manual: Option<Manual>,
    /// Whether the run compacts.
    pub(crate) in_run: bool,
    /// Whether one was stopped whose stop nobody was told of yet: the command that did it may still be on its way here.
    stopped: bool,
}

struct Manual {
    cancel: CancellationToken,
    reply: Reply,
    aborting: Vec<Aborting>,
}

/// What an abort says of a compaction.
pub(crate) const WORK: Work = Work { kind: WorkKind::Compaction, id: None, name: None };

impl Compacting {
    /// Whether a compaction is at work.
    pub(crate) fn is_active(&self) -> bool {
        self.manual.is_some() || self.in_run
    }

    /// Whether one is at work that a command began.
    pub(crate) fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    /// Stops the compaction that a command began.
    pub(crate) fn cancel(&self) {
        if let Some(manual) = &self.manual {
            manual.cancel.cancel();
        }
    }

    /// What an abort ended that comes now and finds nothing at work.
    pub(crate) fn just_stopped(&mut self) -> Vec<Work> {
        if std::mem::take(&mut self.stopped) { vec![WORK] } else { Vec::new() }
    }

    /// What was stopped before is history.
    pub(crate) fn forget_stopped(&mut self) {
        self.stopped = false;
    }

    /// Stops it and keeps the asker until it has ended; gives the asker back when there is none.
    pub(crate) fn abort(&mut self, asker: Aborting) -> Option<Aborting> {
        self.cancel();
        match &mut self.manual {
            Some(manual) => {
                manual.aborting.push(asker);
                None
            }
            None => Some(asker),
        }
    }
}

impl Actor {
    /// Compacts now, or, while a run is active, when that has been aborted.
    pub(crate) fn compact(&mut self, params: CompactParams, reply: Reply) {
        if self.closing {
            let text = "The session is closing and takes no new work.";
            return reply.fail(&self.feed, Failure::new(ErrorCode::ShuttingDown, text));
        }
        if let Some(Aborting::Compact(params, reply)) = self.run.abort(Aborting::Compact(params, reply)) {
            self.start_compaction(params, reply);
        }
    }

    /// Starts the compaction; its end is answered by [`Actor::on_compacted`].
    pub(crate) fn start_compaction(&mut self, params: CompactParams, reply: Reply) {
        if self.compacting.is_manual() {
            let failure = Failure::new(ErrorCode::Busy, "A compaction is already in progress.");
            return reply.fail(&self.feed, failure.hint("Wait for its end, or stop it with abort."));
        }
        self.compacting.forget_stopped();
        let cancel = CancellationToken::new();
        self.abort.arm(cancel.clone());
        self.publish(&CompactionStart { reason: CompactionReason::Manual }.into());
        self.compacting.manual = Some(Manual { cancel: cancel.clone(), reply, aborting: Vec::new() });
        let worker = Worker { shared: Arc::clone(&self.shared), steps: self.steps.clone(), cancel };
        let choice = self.chooser.current();
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(manual(&worker, choice, params)).catch_unwind().await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a compaction panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            // Without the actor there is nobody to tell.
            let _ = worker.steps.send(Step::Compacted(Box::new(result))).await;
        });
    }

    /// The compaction of a command ended: says so, and answers who waited.
    pub(crate) fn on_compacted(&mut self, result: Result<CompactionResult, CompactionError>) {
        let Some(Manual { reply, aborting, .. }) = self.compacting.manual.take() else { return };
        self.abort.disarm();
        let was_stopped = result == Err(CompactionError::Cancelled);
        self.publish(&end(CompactionReason::Manual, &result, false));
        reply.result(&self.feed, result.map_err(Failure::from));
        self.compacting.stopped = was_stopped && aborting.is_empty();
        for aborting in aborting {
            self.answer_abort(aborting, vec![WORK]);
        }
        self.tell_idle();
    }

    /// The switch counts at once, also when it cannot be saved; that is then said.
    pub(crate) async fn set_auto_compaction(&mut self, enabled: bool, reply: Reply) {
        self.shared.auto_compaction.store(enabled, Ordering::Relaxed);
        let saved = self.shared.save_setting(&["compaction", "enabled"], &enabled).await;
        reply.outcome(&self.feed, saved);
    }
}

async fn manual(
    worker: &Worker,
    choice: Choice,
    params: CompactParams,
) -> Result<CompactionResult, CompactionError> {
    tokio::select! {
        biased;
        () = worker.cancel.cancelled() => return Err(CompactionError::Cancelled),
        checked = check_model(&worker.shared, &choice) => checked?,
    }
    let policy = CompactionPolicy::of(&worker.shared.settings, true, &choice.model);
    let plan = worker.plan(PlanRequest { keep_recent: policy.keep_recent, recovery: None }).await?;
    let order = Order { reason: CompactionReason::Manual, plan, choice, focus: params.custom_instructions };
    worker.carry_out(order).await
}

async fn check_model(shared: &Shared, choice: &Choice) -> Result<(), CompactionError> {
    if choice.model.is_placeholder() {
        let failure = Failure::new(ErrorCode::NoModel, "No model selected.");
        let hint = "Choose one with set_model; agentctl doctor says what is missing where there is none.";
        return Err(CompactionError::NoModel(failure.hint(hint)));
    }
    shared.check_model(&choice.model).await.map_err(CompactionError::NoModel)
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
