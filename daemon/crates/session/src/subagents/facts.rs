//! What subagents are made of: the session that starts them, as it is at that moment.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use agentd_config::models::ScopedModel;
use agentd_protocol::settings::TaskSettings;
use futures::future::BoxFuture;

use super::{agents::Agents, isolation::IsolationPlace};
use crate::{
    budget::SessionBudget, models::Choice, permissions::PermissionGate, subagent_host::SubagentHosting,
    ui::Ui,
};

/// Looks things up for a session.
pub(crate) trait Lookup: Send + Sync {
    /// The agents that there are. Reads files; blocks.
    fn agents(&self) -> Agents;

    /// The instructions of skills, by their names; `None` for one that there is not. Reads files; blocks.
    fn skills(&self, names: &[String]) -> Vec<Option<String>>;

    /// The first model that patterns as of `--models` select and that can be used.
    fn first_model(&self, patterns: Vec<String>) -> BoxFuture<'static, Option<ScopedModel>>;
}

/// A session that starts subagents.
pub(crate) struct ParentFacts {
    pub(crate) lookup: Arc<dyn Lookup>,
    /// Opens the sessions of subagents.
    pub(crate) hosting: SubagentHosting,
    pub(crate) settings: TaskSettings,
    /// The setting `modelRoles`.
    pub(crate) model_roles: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    /// The session's file, if it has one.
    pub(crate) session_file: Option<PathBuf>,
    /// Whether the project is trusted.
    pub(crate) is_trusted: bool,
    /// The provider that a key of the options is for.
    pub(crate) key_provider: Option<String>,
    pub(crate) budget: Arc<SessionBudget>,
    pub(crate) permissions: Arc<PermissionGate>,
    /// How changes are isolated; `None` where the settings do not enable it.
    pub(crate) isolation: Option<IsolationPlace>,
    pub(crate) choice: Choice,
    /// The tools that the session's model can call.
    pub(crate) active: Vec<String>,
    pub(crate) ui: Ui,
}
