//! What a session is told that works as a subagent.

use std::{fmt, sync::Arc};

use super::{child_state::ChildState, spawn_policy::SpawnPolicy};
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
    /// The section of its system prompt about what it is.
    pub(crate) prompt: String,
    /// What it has done so far.
    pub(crate) state: Arc<ChildState>,
    /// The session that started it.
    pub(crate) parent: ParentLink,
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
