//! A subagent that has ended goes on: by a message, in its own session.

use std::{path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{
    agents::Agent,
    facts::ParentFacts,
    plan::{Plan, PlannedChild, output_schema},
    refusal::refusal,
    run::Runner,
    table::{Claimed, Subagents},
    tool::run_in_background,
};
use crate::{
    options::{SessionOptions, Target},
    subagent_place::{ChildState, HandedIn, SpawnPolicy},
};

impl Subagents {
    /// Has a subagent that has ended go on with a message. Its new result is told as that of a background job.
    ///
    /// # Errors
    /// A sentence for the model: why it cannot.
    pub(super) async fn revive(&self, id: &str, message: &str) -> Result<String, String> {
        let facts = self.facts().await.ok_or("The session has ended.")?;
        let Some(host) = facts.hosting.get().cloned() else {
            return Err("This program opens no sessions for subagents.".to_owned());
        };
        let lookup = Arc::clone(&facts.lookup);
        let agents =
            tokio::task::spawn_blocking(move || lookup.agents()).await.map_err(|error| error.to_string())?;
        let found = self.find(id).ok_or_else(|| format!("Not found: {id}."))?;
        if let Some(why) = refusal(&found) {
            return Err(why);
        }
        let agent = agents.get(&found.agent, &SpawnPolicy::Any)?;
        let cancel = CancellationToken::new();
        let claimed = self.claim(id, &cancel)?;
        let (before, snapshot) = (claimed.before, claimed.snapshot.clone());
        let begun = async {
            let plan = self.plan_again(claimed, agent, message, (&facts, cancel)).await?;
            self.record(vec![snapshot.clone()]).await?;
            Ok::<Plan, String>(plan)
        };
        let plan = match begun.await {
            Ok(plan) => plan,
            Err(error) => {
                self.unclaim(id, before);
                return Err(error);
            }
        };
        let runner = Runner {
            subagents: self.clone(),
            host,
            settings: facts.settings.clone(),
            call_id: snapshot.parent_tool_call_id.unwrap_or_default(),
            in_background: true,
            isolation: None,
        };
        self.spawn(run_in_background(runner, vec![plan])).await;
        Ok(format!("Sent to {id}, which goes on with it (job `{id}`). You are told of its result."))
    }

    async fn plan_again(
        &self,
        claimed: Claimed,
        agent: &Agent,
        message: &str,
        (facts, cancel): (&ParentFacts, CancellationToken),
    ) -> Result<Plan, String> {
        let Claimed { snapshot, state, inbox, .. } = claimed;
        let id = snapshot.id;
        // Without its state, its session was opened for a stay of this one in memory that is over.
        let closes_first = state.is_none();
        let state = match state {
            Some(state) => {
                state.restart();
                state
            }
            None => {
                let state = ChildState::new(HandedIn::new(output_schema(None, agent)?));
                self.set_state(&id, &state);
                state
            }
        };
        let mut warnings = Vec::new();
        let choice = self.model(agent, None, facts, &mut warnings).await;
        let child = PlannedChild { id: &id, agent, choice, state: &state };
        let options = self.child_options(child, facts, &mut warnings).await?;
        let file = snapshot.session_file.unwrap_or_default();
        let path = PathBuf::from(&file);
        if !tokio::task::spawn_blocking(move || path.is_file()).await.map_err(|error| error.to_string())? {
            return Err(format!("The subagent {id} left no session that could go on. Start another one."));
        }
        Ok(Plan {
            is_blocking: false,
            index: snapshot.index,
            agent: agent.name.clone(),
            source: snapshot.agent_source,
            task: snapshot.task.unwrap_or_default(),
            prompt: format!("{message}\n\nHand in a result again when you are done."),
            options: SessionOptions { target: Target::Existing(file), name: None, ..options },
            state,
            inbox,
            cancel,
            isolated: false,
            reopens: Some(closes_first),
            warnings,
            id,
        })
    }
}
