//! The set-up that these commands work on.

use std::{path::PathBuf, sync::Arc};

use agentd_auth::{Auth, AuthServices, AuthSources};
use agentd_config::{AgentDir, Environment, NoAgentDir, models::ModelRegistry};
use agentd_session::SessionOptions;

/// Where the set-up is. Holds no open files: every command reads the files anew.
#[derive(Debug, Clone)]
pub struct Context {
    /// The environment that configures sessions.
    pub environment: Environment,
    /// The working folder.
    pub cwd: PathBuf,
    /// Whether pi's directories come first (`--compat pi`).
    pub compat: bool,
    /// The services that find and renew credentials, shared with all sessions.
    pub auth_services: AuthServices,
}

impl Context {
    /// The set-up that a session with these options would see.
    #[must_use]
    pub fn of(options: &SessionOptions, auth_services: AuthServices) -> Self {
        Self {
            environment: options.environment.clone(),
            cwd: options.cwd.clone(),
            compat: options.compat,
            auth_services,
        }
    }

    /// The agent directory.
    ///
    /// # Errors
    /// When neither the environment nor the home directory tells where it is.
    pub fn agent_dir(&self) -> Result<AgentDir, NoAgentDir> {
        AgentDir::find(&self.environment, self.compat, &self.cwd)
    }

    /// Models and credentials as they are now. Reads files; blocks.
    ///
    /// # Errors
    /// As of [`Self::agent_dir`].
    pub fn load(&self) -> Result<(Arc<ModelRegistry>, Auth), NoAgentDir> {
        let agent_dir = self.agent_dir()?;
        let registry = Arc::new(ModelRegistry::of_agent_dir(&agent_dir));
        let auth = Auth::load(AuthSources {
            agent_dir,
            environment: self.environment.clone(),
            registry: Arc::clone(&registry),
            services: self.auth_services.clone(),
        });
        Ok((registry, auth))
    }
}
