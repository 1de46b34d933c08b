//! Where a session's policy comes from: the user's settings, flags, a trusted project, answers to earlier questions.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_config::{AgentDir, Environment, ProjectFolders, read_project_json};
use agentd_policy::{Policy, PolicyError, PolicyOptions, ProjectPolicy, RuleLayer, RuleSource};
use agentd_protocol::settings::{PermissionRule, PermissionSettings};
use agentd_store::SessionTree;

use super::{
    gate::{GateTerms, PermissionGate},
    record,
};
use crate::options::PermissionOptions;

/// The time that a question waits, unless the settings say otherwise.
const ASK_TIMEOUT: Duration = Duration::from_secs(60);

/// Permissions that cannot be used. A session does not run without those that were asked for.
#[derive(Debug, thiserror::Error)]
pub enum PermissionFault {
    /// The user's settings hold permissions, budgets or a sandbox that cannot be read.
    #[error("Permissions, budgets and sandbox cannot be used: {0}")]
    Setting(String),
    /// A rule cannot be used.
    #[error("Permissions cannot be used: {0}")]
    Rule(#[from] PolicyError),
    /// The project's policy cannot be read.
    #[error("{} cannot be used: {problem}", path.display())]
    Project {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// What a session's policy is made of.
pub(crate) struct PermissionSources<'a> {
    /// The setting `permissions`.
    pub(crate) settings: Option<&'a PermissionSettings>,
    /// `--permissions` and `--permission-rules`.
    pub(crate) options: &'a PermissionOptions,
    /// The project folders, where the project is trusted.
    pub(crate) project: Option<&'a ProjectFolders>,
    /// Rules by answers for the session.
    pub(crate) session_rules: Vec<PermissionRule>,
    /// The session's folder.
    pub(crate) cwd: &'a Path,
    /// Names the home directory.
    pub(crate) environment: &'a Environment,
    /// Where the setting is saved.
    pub(crate) agent_dir: &'a AgentDir,
}

impl PermissionSources<'_> {
    /// The gate of the session; `None` where everything is allowed. Reads the project's policy; blocks.
    ///
    /// # Errors
    /// [`PermissionFault`].
    pub(crate) fn gate(self) -> Result<Option<PermissionGate>, PermissionFault> {
        let settings = self.settings.cloned().unwrap_or_default();
        let project = self.project.map(project_policy).transpose()?.unwrap_or_default();
        let home = PathBuf::from(self.environment.non_empty("HOME").unwrap_or("/"));
        let layer = |source, rules| RuleLayer { source, rules };
        let policy = Policy::new(PolicyOptions {
            preset: self.options.preset.or(settings.preset).unwrap_or_default(),
            project_preset: project.preset,
            layers: vec![
                layer(RuleSource::User, settings.rules.unwrap_or_default()),
                layer(RuleSource::Project, project.rules),
                layer(RuleSource::Flags, self.options.rules.clone()),
                layer(RuleSource::Session, self.session_rules),
            ],
            cwd: self.cwd.to_owned(),
            home: home.clone(),
        })?;
        if policy.is_unrestricted() {
            return Ok(None);
        }
        let terms = GateTerms {
            ask_timeout: settings.ask_timeout_ms.map_or(ASK_TIMEOUT, Duration::from_millis),
            on_timeout: settings.on_timeout.unwrap_or_default(),
            home,
            agent_dir: self.agent_dir.clone(),
        };
        Ok(Some(PermissionGate::new(policy, terms)))
    }
}

/// The rules that answers on this branch gave the session.
pub(crate) fn session_rules(tree: &SessionTree) -> Vec<PermissionRule> {
    record::rules_of(tree)
}

/// `.agentd/policy.json` of a trusted project; nothing where there is none.
fn project_policy(folders: &ProjectFolders) -> Result<ProjectPolicy, PermissionFault> {
    let Some(path) = folders.own("policy.json") else { return Ok(ProjectPolicy::default()) };
    let fault = |problem: String| PermissionFault::Project { path: path.clone(), problem };
    let document = read_project_json(&path).map_err(|error| fault(error.to_string()))?;
    let Some(document) = document else { return Ok(ProjectPolicy::default()) };
    ProjectPolicy::of(document.value).map_err(|error| fault(error.to_string()))
}
