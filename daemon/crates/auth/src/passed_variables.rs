//! The environment variables that agentd withholds from the programs that it starts: commands, and commands that print keys.

use std::collections::BTreeSet;

use agentd_config::{Environment, settings::load_user};
use agentd_http::Redactor;
use agentd_protocol::{
    models_file::ConfigValue,
    settings::{ChildEnvironmentSettings, matches_pattern},
};

use crate::{Auth, Secret, StoredEntry, ValueError, provider_keys, value};

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

impl Auth {
    /// The names of all variables that hold a key of a provider: those that providers are known to read, and those that
    /// values in `models.json` and (as it was last read) `auth.json` are made of. Of a header's value only those count that speak of a secret
    /// by their own name or the header's. Reads no files; whether a variable is set is not looked at.
    #[must_use]
    pub fn key_variables(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = provider_keys::key_variables().map(str::to_owned).collect();
        for provider in self.registry().configured() {
            names.extend(provider.keys().flat_map(value::variables));
            for (header, value) in provider.header_values() {
                names.extend(secret_variables(header, value));
            }
        }
        self.with_stored(|stored| {
            for entry in stored.values() {
                let StoredEntry::ApiKey { key, env } = entry else { continue };
                names.extend(key.iter().flat_map(value::variables));
                names.extend(env.iter().flat_map(|(name, value)| secret_variables(name, value)));
            }
        });
        names
    }

    /// The variables of [`Auth::key_variables`] that are set and empty, which counts as not set. Reads no files.
    #[must_use]
    pub fn empty_key_variables(&self) -> Vec<String> {
        let mut names: Vec<String> = self.key_variables().into_iter().collect();
        names.retain(|name| self.environment().get(name) == Some(""));
        names
    }
}

/// The variables in the value of something that need not be a secret.
fn secret_variables(name: &str, value: &ConfigValue) -> impl Iterator<Item = String> {
    let is_secret = Redactor::hides(name);
    value::variables(value).into_iter().filter(move |variable| is_secret || Redactor::hides(variable))
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use agentd_config::{AgentDir, Environment, models::ModelRegistry};

    use crate::{AuthServices, AuthSources};

    use super::*;

    #[test]
    fn variables_of_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let models = r#"{"providers": {"a": {"baseUrl": "http://h/v1", "api": "openai-completions", "apiKey": "x${FIRST}-$SECOND",
            "headers": {"x-user": "$USER", "x-other": "$OTHER_TOKEN", "authorization": "Bearer $PLAIN"},
            "oauth": {"clientId": "i", "clientSecret": "$OF_CLIENT"},
            "models": [{"id": "m", "headers": {"x-api-key": "$OF_MODEL"}}]},
            "openai": {"apiKey": "!pass $NOT_SEEN", "headers": {"x-team": "t"}}}}"#;
        fs::write(folder.path().join("models.json"), models).unwrap();
        let auth = r#"{"a": {"type": "api_key", "key": "$STORED", "env": {"REGION": "$PLACE", "MY_KEY": "$MINE"}}, "b": 5}"#;
        fs::write(folder.path().join("auth.json"), auth).unwrap();
        let environment: Environment = [("AGENTD_DIR", folder.path())].into_iter().collect();
        let agent_dir = AgentDir::find(&environment, false, folder.path()).unwrap();
        let registry = Arc::new(ModelRegistry::of_agent_dir(&agent_dir));
        let services = AuthServices::default();
        let names = Auth::load(AuthSources { agent_dir, environment, registry, services }).key_variables();
        for name in [
            "FIRST",
            "SECOND",
            "OTHER_TOKEN",
            "PLAIN",
            "OF_CLIENT",
            "OF_MODEL",
            "STORED",
            "MINE",
            "ANTHROPIC_API_KEY",
        ] {
            assert!(names.contains(name), "{name} {names:?}");
        }
        for name in ["USER", "PLACE", "NOT_SEEN", "REGION"] {
            assert!(!names.contains(name), "{name}");
        }
    }

    #[test]
    fn every_variable_stands_on_the_page() {
        let page = include_str!("../../../../docs/security.md");
        for name in provider_keys::key_variables() {
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/security.md does not say what children get of {name}"
            );
        }
    }
}
