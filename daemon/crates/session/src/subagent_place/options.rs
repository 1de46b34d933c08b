//! What a session is told that works as a subagent.

use std::{fmt, sync::Arc};

use agentd_extensions::{ExtensionSource, HostChannel};
use agentd_protocol::settings::Settings;
use serde_json::{Map, Value};

use super::{child_state::ChildState, parent_agents::ParentAgents, spawn_policy::SpawnPolicy};
use crate::{
    budget::SessionBudget,
    permissions::PermissionGate,
    ui::{ParentUi, Ui},
};

/// The place of a session as a subagent of another.
#[derive(Clone)]
pub struct SubagentOptions {
    /// Its id.
    pub(crate) id: String,
    /// The name of its definition.
    pub(crate) agent: String,
    /// The names of the definitions above it and its own, the user's session's excepted. Their number is its depth.
    pub(crate) lineage: Vec<String>,
    /// Which agents it may start.
    pub(crate) spawns: SpawnPolicy,
    /// The section of its system prompt about what it is; `None` where its extension says what it is told.
    pub(crate) prompt: Option<String>,
    /// What it has done so far.
    pub(crate) state: Arc<ChildState>,
    /// The session that started it.
    pub(crate) parent: ParentLink,
    /// What the extension hands over that has opened it; `None` where the tool `task` has.
    pub(crate) of_extension: Option<Arc<ExtensionPart>>,
}

/// What an extension hands over with a session that it opens.
#[derive(Debug)]
pub(crate) struct ExtensionPart {
    /// The session's extensions, in load order.
    pub(crate) sources: Vec<ExtensionSource>,
    /// Where those for Node run: in the process of the extension.
    pub(crate) channel: HostChannel,
    /// Settings above those of the files; see [`overridable`].
    pub(crate) settings: Map<String, Value>,
}

/// The settings that an extension may say for a session that it opens: how the agent works, and nothing of what it may do.
const OVERRIDABLE: [&str; 14] = [
    "branchSummary",
    "compaction",
    "defaultModel",
    "defaultProvider",
    "defaultThinkingLevel",
    "defaultTools",
    "enabledModels",
    "followUpMode",
    "images",
    "modelThinkingLevels",
    "retry",
    "steeringMode",
    "thinkingBudgets",
    "transport",
];

/// Whether an extension may say a setting for a session that it opens.
pub(crate) fn overridable(name: &str) -> bool {
    OVERRIDABLE.contains(&name)
}

impl ExtensionPart {
    /// The settings with those that the extension says. Ones that cannot be read stay as they are.
    pub(crate) fn over(&self, settings: Settings) -> Settings {
        if self.settings.is_empty() {
            return settings;
        }
        let Ok(mut values) = serde_json::to_value(&settings) else { return settings };
        for (name, value) in &self.settings {
            merge(&mut values[name.as_str()], value);
        }
        serde_json::from_value(values).unwrap_or(settings)
    }
}

/// Puts what an object has into another; anything else takes its place.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// What a subagent has of the session that started it.
#[derive(Clone)]
pub(crate) struct ParentLink {
    /// Its budgets, which the subagent's work counts to.
    pub(crate) budget: Arc<SessionBudget>,
    /// Its permissions, which the subagent has, too.
    pub(crate) permissions: Arc<PermissionGate>,
    /// Its user, who is asked where nobody follows the subagent.
    pub(crate) ui: Ui,
    /// It, and its other subagents, for messages.
    pub(crate) agents: Arc<dyn ParentAgents>,
}

impl SubagentOptions {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of its definition.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

impl SubagentOptions {
    /// The user of the session that started it.
    pub(crate) fn parent_ui(&self) -> Box<ParentUi> {
        Box::new(ParentUi { ui: self.parent.ui.clone(), id: self.id.clone() })
    }
}

impl fmt::Debug for SubagentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentOptions")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
