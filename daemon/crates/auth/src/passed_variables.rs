//! The environment variables that agentd withholds from the programs that it starts: commands, and commands that print keys.

use std::collections::BTreeSet;

use agentd_config::{Environment, settings::load_user};
use agentd_protocol::{
    models_file::ConfigValue,
    settings::{ChildEnvironmentSettings, matches_pattern},
};

use crate::{Auth, Secret, ValueError, value};

/// Variables that programs need for their own work. They are passed although a model's key may come from them; only `withhold`
/// takes them away.
const OF_PROGRAMS: [&str; 22] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN",
    "NPM_TOKEN",
    "DISPLAY",
    "HOME",
    "LANG",
    "LC_*",
    "LOGNAME",
    "PWD",
    "SHELL",
    "SSH_AUTH_SOCK",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_*",
];

/// The variables that programs get.
#[derive(Debug, Clone, Copy)]
pub struct PassedVariables<'a> {
    /// The variables that hold keys of models ([`Auth::key_variables`]).
    pub keys: &'a BTreeSet<String>,
    /// The user's setting `childEnvironment`.
    pub settings: Option<&'a ChildEnvironmentSettings>,
}

impl PassedVariables<'_> {
    /// Returns whether programs get the variable of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let is_one_of =
            |list: Option<&Vec<String>>| list.into_iter().flatten().any(|it| matches_pattern(it, name));
        if is_one_of(self.settings.and_then(|settings| settings.pass.as_ref())) {
            return true;
        }
        if is_one_of(self.settings.and_then(|settings| settings.withhold.as_ref())) {
            return false;
        }
        !self.keys.contains(name) || OF_PROGRAMS.iter().any(|pattern| matches_pattern(pattern, name))
    }
}

impl Auth {
    /// Resolves a value of a file. A command gets only the variables that commands get: otherwise anyone who can write the file
    /// could read all keys.
    ///
    /// # Errors
    /// [`ValueError`]. Cancel safety: a command that runs for this call alone is killed when it is dropped.
    pub(crate) async fn value(
        &self,
        value: &ConfigValue,
        environment: &Environment,
    ) -> Result<Secret, ValueError> {
        let commands = &self.services().commands;
        if value::is_command(value) {
            let environment = self.environment_of_commands(environment).await;
            return value::resolve(value, &environment, commands).await;
        }
        value::resolve(value, environment, commands).await
    }

    /// The part of `environment` for programs that print keys. Reads the user's settings.
    pub(crate) async fn environment_of_commands(&self, environment: &Environment) -> Environment {
        let agent_dir = self.agent_dir().clone();
        let settings = tokio::task::spawn_blocking(move || load_user(&agent_dir)).await.unwrap_or_default();
        let (keys, settings) = (self.key_variables(), settings.child_environment.as_ref());
        let passed = PassedVariables { keys: &keys, settings };
        environment.iter().filter(|(name, _)| passed.has(&name.to_string_lossy())).collect()
    }
}
