//! Looks up what subagents of a session are made of.

use std::sync::Arc;

use agentd_config::{
    models::{ScopedModel, resolve_scope},
    resources::{ExpandError, instructions, load_skills},
};
use futures::future::BoxFuture;

use super::found::FoundCapabilities;
use crate::{
    context::SessionContext,
    subagent_place::SpawnPolicy,
    subagents::{Agents, Lookup},
};

/// The context of the session.
pub(crate) struct ContextLookup(pub(crate) Arc<SessionContext>);

impl Lookup for ContextLookup {
    fn agents(&self) -> Agents {
        self.0.agents(&self.0.capabilities())
    }

    fn skills(&self, names: &[String]) -> Vec<Option<String>> {
        let known = self.0.with_resources(&mut Vec::new(), load_skills);
        let text = |name: &String| {
            let skill = known.iter().find(|skill| skill.name == *name)?;
            let told = |error: &ExpandError| tracing::warn!(%error, "a skill of an agent");
            instructions(skill).inspect_err(told).ok()
        };
        names.iter().map(text).collect()
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
    fn agents(&self, capabilities: &FoundCapabilities) -> Agents {
        let disabled =
            self.settings.task.as_ref().map(|task| task.disabled_agents.as_slice()).unwrap_or_default();
        Agents::find(capabilities, &capabilities.place, disabled)
    }

    /// The section of the system prompt about the agents that the session can start. Reads files; blocks.
    pub(crate) fn agents_section(&self, capabilities: &FoundCapabilities) -> Option<String> {
        let policy = self.subagents.own().map_or(SpawnPolicy::Any, |own| own.spawns.clone());
        self.agents(capabilities).section(&policy)
    }
}
