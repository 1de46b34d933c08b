//! Leaving a branch with a summary of it: the part of `navigate_tree` that asks a model.

use std::panic::AssertUnwindSafe;

use agentd_protocol::{command::Navigated, entry::EntryBody, error::Failure};
use agentd_store::NavigationTarget;
use futures::FutureExt;

use super::{
    CompactionError, CompactionWorker,
    branch::{BranchPlan, plan, summarize_branch},
    manual::check_model,
    policy::branch_budget,
};
use crate::{actor::Actor, choice::Choice, reply::Reply, run_message::RunMessage};

impl Actor {
    /// Goes on at `landing` once what is left behind is summarised; at once where nothing is. While that works, it is as with
    /// a compaction: prompts are refused, and an abort stops it.
    pub(crate) fn leave_with_summary(
        &mut self,
        landing: NavigationTarget,
        focus: Option<String>,
        reply: Reply,
    ) {
        let choice = self.chooser.current();
        let budget = branch_budget(&self.context.settings, &choice.model);
        let Some(branch) = plan(self.journal.tree(), landing.leaf.as_deref(), budget) else {
            let result = self.land(landing);
            return reply.result(&self.feed, result);
        };
        let worker = self.begin_summary(reply);
        self.tasks.spawn(async move {
            let work =
                AssertUnwindSafe(summary(&worker, branch, &choice, focus.as_deref())).catch_unwind().await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a summary of a branch panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            // Without the actor there is nobody to tell.
            let _ = worker.to_actor.send(RunMessage::BranchSummarised(Box::new((landing, result)))).await;
        });
    }

    /// The summary of a branch is there: moves, and adds it. Without one, nothing has changed.
    pub(crate) async fn on_branch_summarised(
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
            return Err(failure);
        }
        let id = self.journal.tree().leaf_id().map(str::to_owned);
        Ok(Navigated { summary_entry_id: id.clone(), leaf_id: id, ..navigated })
    }
}

async fn summary(
    worker: &CompactionWorker,
    branch: BranchPlan,
    choice: &Choice,
    focus: Option<&str>,
) -> Result<EntryBody, CompactionError> {
    check_model(worker, choice).await?;
    let body = summarize_branch(worker, branch, choice, focus).await?;
    if worker.cancel.is_cancelled() { Err(CompactionError::Cancelled) } else { Ok(body) }
}
