//! Looks up what subagents of a session are made of.

use std::sync::Arc;

use agentd_config::models::{ScopedModel, resolve_scope};
use futures::future::BoxFuture;

use crate::{
    context::SessionContext,
    subagent_place::SpawnPolicy,
    subagents::{Agents, Lookup},
};

/// The context of the session.
pub(crate) struct ContextLookup(pub(crate) Arc<SessionContext>);

impl Lookup for ContextLookup {
    fn agents(&self) -> Agents {
        self.0.agents()
    }

    fn first_model(&self, patterns: Vec<String>) -> BoxFuture<'static, Option<ScopedModel>> {
        let context = Arc::clone(&self.0);
        Box::pin(async move {
            let scope = context.with_usable_models(move |usable| resolve_scope(usable, &patterns)).await;
            scope.models.into_iter().next()
        })
    }
}

impl SessionContext {
    /// The agents that there are. Reads files; blocks.
    fn agents(&self) -> Agents {
        let disabled =
            self.settings.task.as_ref().map(|task| task.disabled_agents.as_slice()).unwrap_or_default();
        Agents::find(&self.capabilities(), &self.discovery_place(), disabled)
    }

    /// The section of the system prompt about the agents that the session can start. Reads files; blocks.
    pub(crate) fn agents_section(&self) -> Option<String> {
        let policy = self.subagents.own().map_or(SpawnPolicy::Any, |own| own.spawns.clone());
        self.agents().section(&policy)
    }
}
