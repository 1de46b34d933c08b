//! Where a session's policy comes from: the user's settings, flags, a trusted project, answers to earlier questions.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, ProjectFolders, read_project_json};
use agentd_policy::{PolicyError, ProjectPolicy, RuleLayer, RuleSource};
use agentd_protocol::settings::{PermissionPreset, PermissionRule, PermissionSettings};
use agentd_store::SessionTree;

use super::{
    gate::PermissionGate,
    in_force::{GateSources, InForce},
    record,
};

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

/// The permissions that flags ask for, besides those of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionOptions {
    /// `--permissions`: the preset in the place of that of the settings.
    pub preset: Option<PermissionPreset>,
    /// `--permission-rules`: rules besides those of the settings.
    pub rules: Vec<PermissionRule>,
}

/// What a session's policy is made of.
pub(crate) struct PermissionSources<'a> {
    /// The setting `permissions`.
    pub(crate) settings: Option<&'a PermissionSettings>,
    /// `--permissions` and `--permission-rules`.
    pub(crate) options: &'a PermissionOptions,
    /// The project folders, where the project is trusted.
    pub(crate) project: Option<&'a ProjectFolders>,
    /// The session's folder.
    pub(crate) cwd: &'a Path,
    /// Further folders of the workspace.
    pub(crate) folders: &'a [PathBuf],
    /// Whether tools work on another host.
    pub(crate) is_elsewhere: bool,
    /// Names the home directory.
    pub(crate) environment: &'a Environment,
    /// Where the setting is saved.
    pub(crate) agent_dir: &'a AgentDir,
}

impl PermissionSources<'_> {
    /// The gate of a session that is opened: with what commands changed before it was unloaded, and with rules by answers. Reads the
    /// project's policy; blocks.
    ///
    /// # Errors
    /// [`PermissionFault`].
    pub(crate) fn gate(
        self,
        changes: Option<PermissionSettings>,
        answers: Vec<PermissionRule>,
    ) -> Result<PermissionGate, PermissionFault> {
        let in_force = InForce::new(self.read()?, changes.unwrap_or_default(), answers)?;
        Ok(PermissionGate::new(in_force))
    }

    /// What another gate can go on with. Reads the project's policy; blocks.
    ///
    /// # Errors
    /// [`PermissionFault`].
    pub(crate) fn checked(self) -> Result<GateSources, PermissionFault> {
        let sources = self.read()?;
        InForce::new(sources.clone(), PermissionSettings::default(), Vec::new())?;
        Ok(sources)
    }

    fn read(self) -> Result<GateSources, PermissionFault> {
        let settings = self.settings.cloned().unwrap_or_default();
        let project = self.project.map(project_policy).transpose()?.unwrap_or_default();
        let layer = |source, rules| RuleLayer { source, rules };
        Ok(GateSources {
            preset: self.options.preset.or(settings.preset).unwrap_or_default(),
            project_preset: project.preset,
            layers: vec![
                layer(RuleSource::User, settings.rules.unwrap_or_default()),
                layer(RuleSource::Project, project.rules),
                layer(RuleSource::Flags, self.options.rules.clone()),
            ],
            ask_timeout_ms: settings.ask_timeout_ms,
            on_timeout: settings.on_timeout,
            cwd: self.cwd.to_owned(),
            // On another host, a path of this machine is another folder.
            folders: if self.is_elsewhere { Vec::new() } else { self.folders.to_vec() },
            is_elsewhere: self.is_elsewhere,
            home: PathBuf::from(self.environment.non_empty("HOME").unwrap_or("/")),
            agent_dir: self.agent_dir.clone(),
        })
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
