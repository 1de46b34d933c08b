//! The source of a provider's key, for display.

use agentd_config::Environment;

use crate::{
    Auth, StoredCredentials, StoredEntry,
    oauth::{self, now_ms},
    provider_keys,
    resolve::overlay,
    value,
};

/// A place that a key can come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// `--api-key`.
    Flag,
    /// `auth.json`.
    Stored,
    /// `apiKey` in `models.json`.
    ModelsFile,
    /// An environment variable.
    Variable(&'static str),
}

/// The source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// The place that counts.
    pub source: KeySource,
    /// Why what is there is no usable key; `None` for one that is, as far as can be told without running commands.
    pub problem: Option<String>,
    /// Other places that have something, which does not count.
    pub shadowed: Vec<KeySource>,
}

/// The facts about a stored login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginStatus {
    /// In how many milliseconds its token ends; negative when it has.
    pub ends_in: Option<i64>,
    /// True if agentd can renew it.
    pub renewable: bool,
}

/// A time that no token lives to see: the year 5138.
const FAR_MS: i64 = 100_000_000_000_000;

impl Auth {
    /// The source of a provider's key; `None` when none is configured. Reads no files and runs nothing.
    #[must_use]
    pub fn status(&self, provider: &str) -> Option<KeyStatus> {
        let environment = self.environment();
        let mut sources = Vec::new();
        if self.override_of(provider).is_some() {
            sources.push((KeySource::Flag, None));
        }
        if let Some(stored) = self.stored_entry(provider) {
            let problem = match &stored {
                StoredEntry::OAuth(login) => self.login_problem(provider, login),
                stored => problem_of(stored, provider, environment),
            };
            sources.push((KeySource::Stored, problem));
        }
        let variable = provider_keys::variable_of(provider, environment)
            .or_else(|| provider_keys::cloud_variable_of(provider, environment))
            .map(KeySource::Variable);
        if let Some(key) = self.configured_key(provider) {
            let problem = (!value::is_resolvable(key, environment))
                .then(|| "it is empty, or names a variable that is not set".to_owned());
            // A configured variable that is not set counts as nothing configured where the provider's own is.
            if problem.is_none() || variable.is_none() {
                sources.push((KeySource::ModelsFile, problem));
            }
        }
        sources.extend(variable.map(|variable| (variable, None)));
        let mut sources = sources.into_iter();
        let (source, problem) = sources.next()?;
        Some(KeyStatus { source, problem, shadowed: sources.map(|(source, _)| source).collect() })
    }

    /// The facts about a provider's stored login, if there is one. Reads no files.
    #[must_use]
    pub fn login(&self, provider: &str) -> Option<LoginStatus> {
        let StoredEntry::OAuth(login) = self.stored_entry(provider)? else { return None };
        // Some write a number for the end of what does not end.
        let ends = login.expires.filter(|expires| *expires < FAR_MS);
        Some(LoginStatus {
            ends_in: ends.map(|expires| expires.saturating_sub(now_ms())),
            renewable: oauth::no_way(self.description(provider).as_ref(), &login).is_none(),
        })
    }

    /// Variables that a provider needs beside its key and that neither the environment nor the stored entry has, in words,
    /// such as `A or B`.
    #[must_use]
    pub fn missing_variables(&self, provider: &str) -> Vec<String> {
        let environment = match self.stored_entry(provider) {
            Some(StoredEntry::ApiKey { env, .. }) => overlay(self.environment(), &env),
            _ => self.environment().clone(),
        };
        provider_keys::missing_beside_key(provider, &environment)
    }

    fn stored_entry(&self, provider: &str) -> Option<StoredEntry> {
        self.with_stored(|stored: &StoredCredentials| stored.get(provider).cloned())
    }
}

fn problem_of(stored: &StoredEntry, provider: &str, environment: &Environment) -> Option<String> {
    match stored {
        StoredEntry::ApiKey { key: Some(key), env } => {
            (!value::is_resolvable(key, &overlay(environment, env)))
                .then(|| "it is empty, or names a variable that is not set".to_owned())
        }
        StoredEntry::ApiKey { key: None, env } => {
            let environment = overlay(environment, env);
            let has_key = provider_keys::variable_of(provider, &environment)
                .or_else(|| provider_keys::cloud_variable_of(provider, &environment));
            has_key.is_none().then(|| "it has no \"key\"".to_owned())
        }
        // The login's own check has looked at it.
        StoredEntry::OAuth(_) => None,
        StoredEntry::Unusable(why) => Some(why.clone()),
    }
}
