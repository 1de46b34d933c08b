//! What these commands look at.

use std::{path::PathBuf, sync::Arc};

use agentd_auth::{Auth, AuthServices, AuthSources};
use agentd_config::{AgentDir, Environment, NoAgentDir, models::ModelRegistry};
use agentd_session::SessionOptions;

/// Where the set-up is. Holds no open files; everything is read when a command asks.
#[derive(Debug, Clone)]
pub struct Context {
    /// The environment that configures sessions.
    pub environment: Environment,
    /// The working folder.
    pub cwd: PathBuf,
    /// Whether the reference's own directories come first.
    pub compat: bool,
    /// What finding credentials shares among all who do.
    pub auth_services: AuthServices,
}

impl Context {
    /// What a session with these options would see.
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
    /// When nothing says where it is.
    pub fn agent_dir(&self) -> Result<AgentDir, NoAgentDir> {
        AgentDir::find(&self.environment, self.compat, &self.cwd)
    }

    /// Models and credentials as they are now. Reads files; blocks.
    ///
    /// # Errors
    /// When the agent directory is not known.
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
