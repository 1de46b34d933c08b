//! What finding and starting extensions takes of a session, which may not have its settings and its file yet.

use std::{path::Path, sync::Arc};

use agentd_config::{AgentDir, Environment};
use agentd_protocol::settings::Settings;

use crate::{
    child_environment::ChildEnvironment, context::SessionContext, options::SessionMode, services::Services,
};

/// What finding and starting extensions takes of a session.
#[derive(Clone, Copy)]
pub(crate) struct ExtensionSurroundings<'a> {
    pub(crate) services: &'a Arc<Services>,
    /// Empty where the session is not chosen yet.
    pub(crate) session_id: &'a str,
    pub(crate) cwd: &'a Path,
    pub(crate) agent_dir: &'a AgentDir,
    pub(crate) environment: &'a Environment,
    pub(crate) child_environment: &'a ChildEnvironment,
    pub(crate) settings: &'a Settings,
    pub(crate) mode: SessionMode,
    /// Whether the project is trusted.
    pub(crate) trusted: bool,
}

impl SessionContext {
    pub(crate) fn extension_surroundings(&self) -> ExtensionSurroundings<'_> {
        ExtensionSurroundings {
            services: &self.services,
            session_id: &self.session_id,
            cwd: &self.cwd,
            agent_dir: &self.agent_dir,
            environment: &self.environment,
            child_environment: &self.child_environment,
            settings: &self.settings,
            mode: self.mode,
            trusted: self.prompt.is_trusted(),
        }
    }
}
