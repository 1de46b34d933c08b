//! Going to another entry of the tree: the command `navigate_tree`, and the call of extensions.

use std::panic::AssertUnwindSafe;

use agentd_extensions::{CallResponder, EventKind, HostFailure};
use agentd_protocol::{
    command::{NavigateTreeParams, Navigated},
    entry::EntryBody,
    error::{ErrorCode, Failure},
};
use agentd_store::NavigationTarget;
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{session_actor::Actor, tree::no_entry};
use crate::{
    compaction::{BranchFocus, CompactionError, branch_budget, plan_branch},
    navigation::{Departure, Leaving, Navigation, TreePreparation},
    reply::Reply,
    run::RunMessage,
    summary_asker::SummaryAsker,
};

impl Actor {
    pub(super) async fn navigate_tree(&mut self, params: NavigateTreeParams, reply: Reply) {
        let NavigateTreeParams { entry_id, summarize, custom_instructions } = params;
        let landing = match self.landing(&entry_id) {
            Ok(landing) => landing,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let navigation = Navigation {
            target_id: entry_id,
            summarize: summarize == Some(true),
            focus: BranchFocus { instructions: custom_instructions, replaces: false },
            label: None,
        };
        self.go(navigation, landing, SummaryAsker::Client(reply)).await;
    }

    /// The call `session.navigate` of an extension. The texts of failures are pi's.
    pub(super) async fn navigate_for_extension(&mut self, params: &Value, responder: CallResponder) {
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let refused = |text: &str| Err(HostFailure::new("busy", text));
        if self.run.is_active() && !self.settling {
            let text = "Wait for the current response to finish before navigating the session tree.";
            return responder.send(&refused(text));
        }
        if self.run.is_active() || self.compacting.is_active() {
            let text = "Wait for the current compaction or tree navigation to finish before navigating the session tree.";
            return responder.send(&refused(text));
        }
        let Some(target_id) = text("targetId") else {
            return responder.send(&Err(HostFailure::new("invalid", "The parameter targetId is missing.")));
        };
        if self.journal.tree().leaf_id() == Some(&*target_id) {
            return responder.send(&Ok(json!({"cancelled": false})));
        }
        let summarize = params["summarize"] == true;
        if summarize && self.chooser.current().model.is_placeholder() {
            return responder.send(&Err(HostFailure::new("failed", "No model available for summarization")));
        }
        let landing = match self.landing(&target_id) {
            Ok(landing) => landing,
            Err(failure) => return responder.send(&Err(HostFailure::new("failed", failure.error))),
        };
        let navigation = Navigation {
            target_id,
            summarize,
            focus: BranchFocus {
                instructions: text("customInstructions"),
                replaces: params["replaceInstructions"] == true,
            },
            label: text("label"),
        };
        let (asker, answered) = oneshot::channel::<Result<Value, Failure>>();
        self.context.services.tasks.spawn(async move {
            let outcome = match answered.await {
                Ok(Ok(navigated)) => Ok(json!({"cancelled": navigated["cancelled"]})),
                Ok(Err(failure)) => Err(HostFailure::new("failed", failure.error)),
                // The session is gone, which the responder says.
                Err(_) => return,
            };
            responder.send(&outcome);
        });
        self.go(navigation, landing, SummaryAsker::Extension(asker)).await;
    }

    /// Where a move leads to, if the session can go there now.
    fn landing(&self, entry_id: &str) -> Result<NavigationTarget, Failure> {
        if self.run.is_active() || self.compacting.is_active() {
            let text = "The session is at work: it cannot go back to another entry meanwhile.";
            let hint = "Wait for agent_settled or compaction_end, or abort first.";
            return Err(Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        // Unflushed writes belong to the current branch.
        if let Some(failure) = self.unflushed.failure() {
            return Err(failure);
        }
        NavigationTarget::at(self.journal.tree(), entry_id).map_err(|error| no_entry(error.to_string()))
    }

    /// Goes on at `landing`: at once, or once extensions were asked and what is left behind is summarised. While that works, it is as with
    /// a compaction: prompts are refused, and an abort stops it.
    async fn go(&mut self, navigation: Navigation, landing: NavigationTarget, asker: SummaryAsker) {
        let tree = self.journal.tree();
        let choice = self.chooser.current();
        let branch = navigation.summarize.then(|| {
            let budget = branch_budget(&self.context.settings, &choice.model);
            plan_branch(tree, landing.leaf.as_deref(), budget)
        });
        let extensions = self.context.extensions.as_ref();
        let is_asked = extensions.is_some_and(|extensions| extensions.listens(EventKind::SessionBeforeTree));
        let shown = is_asked.then(|| TreePreparation::of(tree, &navigation));
        let branch = branch.flatten();
        let old_leaf = tree.leaf_id().map(str::to_owned);
        if shown.is_none() && branch.is_none() {
            let Navigation { target_id, label, .. } = navigation;
            let departure =
                Departure { landing, target_id, old_leaf, summary: None, is_of_extension: false, label };
            let (outcome, told) = self.land(departure).await;
            self.answer_after(asker, outcome, told);
            return;
        }
        let leaving = Leaving { navigation, landing, choice, branch, shown, old_leaf };
        let (worker, to_actor) = (self.begin_summary(asker), self.to_actor.clone());
        self.tell_extensions();
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(worker.leave(leaving)).catch_unwind().await;
            let result = work.unwrap_or_else(|_| {
                tracing::error!("a summary of a branch panicked");
                Err(CompactionError::Broken("see the daemon's log".to_owned()))
            });
            // Without the actor there is nobody to tell.
            let _ = to_actor.send(RunMessage::BranchLeft(Box::new(result))).await;
        });
    }

    /// The branch can be left, or cannot. Where it cannot, nothing has changed.
    pub(super) async fn on_branch_left(&mut self, result: Result<Departure, CompactionError>) {
        let stopped = matches!(result, Err(CompactionError::Cancelled));
        let (outcome, told) = match result {
            Ok(departure) => self.land(departure).await,
            Err(CompactionError::Cancelled) => {
                let leaf_id = self.journal.tree().leaf_id().map(str::to_owned);
                let nothing =
                    Navigated { cancelled: true, editor_text: None, summary_entry_id: None, leaf_id };
                (Ok(nothing), None)
            }
            Err(error) => (Err(Failure::from(error)), None),
        };
        let mut kept = None;
        self.end_summary(stopped, |asker, _| kept = Some(asker)).await;
        if let Some(asker) = kept {
            self.answer_after(asker, outcome, told);
        }
    }

    /// Moves the leaf, and adds the summary and the label. Without these nothing is written: the next entry shows where the session went
    /// on. Returns the event for extensions, too.
    async fn land(&mut self, departure: Departure) -> (Result<Navigated, Failure>, Option<Value>) {
        let Departure { landing, target_id, old_leaf, summary, is_of_extension, label } = departure;
        let before = self.journal.tree().leaf_id().map(str::to_owned);
        if let Err(error) = self.journal.set_leaf(landing.leaf.as_deref()) {
            return (Err(no_entry(error.to_string())), None);
        }
        self.has_moved = true;
        self.restore_todos();
        self.restore_rules();
        let mut navigated = Navigated {
            cancelled: false,
            editor_text: landing.text,
            summary_entry_id: None,
            leaf_id: landing.leaf,
        };
        let mut event = json!({"type": "session_tree", "oldLeafId": old_leaf});
        if let Some(summary) = summary {
            if let Err(failure) = self.journal.append(&summary).await {
                // The leaf was there a moment ago.
                if let Err(error) = self.journal.set_leaf(before.as_deref()) {
                    tracing::error!(%error, "the conversation could not go back to its branch");
                }
                self.restore_todos();
                self.restore_rules();
                return (Err(failure), None);
            }
            let entry = self.journal.tree().leaf();
            event["summaryEntry"] =
                entry.and_then(|entry| entry.json().ok()).map_or(Value::Null, |it| json!(it));
            event["fromExtension"] = is_of_extension.into();
            let id = entry.map(|entry| entry.id().to_owned());
            (navigated.summary_entry_id, navigated.leaf_id) = (id.clone(), id);
        }
        if let Some(label) = label.filter(|label| !label.is_empty()) {
            let target_id = navigated.summary_entry_id.clone().unwrap_or(target_id);
            if let Err(failure) =
                self.journal.append(&EntryBody::Label { target_id, label: Some(label) }).await
            {
                tracing::error!(error = failure.error, "the label of a branch could not be stored");
            }
            navigated.leaf_id = self.journal.tree().leaf_id().map(str::to_owned);
        }
        event["newLeafId"] = json!(self.journal.tree().leaf_id());
        let extensions = self.context.extensions.as_ref();
        let is_told = extensions.is_some_and(|extensions| extensions.listens(EventKind::SessionTree));
        self.tell_extensions();
        (Ok(navigated), is_told.then_some(event))
    }

    /// Answers once the handlers of `session_tree` have ended, which may already begin other work.
    fn answer_after(&self, asker: SummaryAsker, outcome: Result<Navigated, Failure>, told: Option<Value>) {
        let Some((event, extensions)) = told.zip(self.context.extensions.clone()) else {
            return asker.result(&self.feed, outcome);
        };
        let feed = self.feed.clone();
        self.context.services.tasks.spawn(async move {
            extensions.notify(EventKind::SessionTree, &event).await;
            asker.result(&feed, outcome);
        });
    }
}
