//! The environment variables that hold keys of models, which are withheld from the programs that models start.

use std::collections::BTreeSet;

use agentd_http::Redactor;
use agentd_protocol::models_file::ConfigValue;

use crate::{Auth, StoredEntry, provider_keys, value};

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
