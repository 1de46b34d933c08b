//! The credentials of a provider: which source counts, and what it says.

use std::sync::Arc;

use agentd_config::{Environment, models::DEMO_PROVIDER};
use agentd_http::{Account, Credentials};
use agentd_protocol::{model::Model, models_file::ConfigValue};

use crate::{
    Auth, AuthError, Secret, StoredEntry, ValueError, address, aws, azure, federation, google, oauth,
    provider_keys::{self, ProviderKey},
    register_secrets::{register_credentials, register_one},
    value,
};

mod login;
mod outside_login;

use login::RefusedCredentials;
pub use login::StartError;

/// The credentials of requests to a model, and their address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderCredentials {
    /// Keys and headers. A header that is empty takes that of the adapter away.
    pub credentials: Credentials,
    /// The address in the place of the model's, where that has parts that come from variables (`{NAME}`).
    pub base_url: Option<String>,
}

impl Auth {
    /// Returns whether a key is configured for a provider, as far as that can be told without running commands or asking the
    /// network. Reads no files.
    #[must_use]
    pub fn is_configured(&self, provider: &str) -> bool {
        if self.needs_no_key(provider) || self.override_of(provider).is_some() {
            return true;
        }
        let environment = self.environment();
        match self.stored().credentials.get(provider) {
            Some(StoredEntry::ApiKey { key: Some(key), env }) => {
                value::is_resolvable(key, &overlay(environment, env))
            }
            Some(StoredEntry::ApiKey { key: None, env }) => has_key(provider, &overlay(environment, env)),
            Some(StoredEntry::OAuth(login)) => self.login_problem(provider, login).is_none(),
            Some(StoredEntry::Unusable(_)) => false,
            None => {
                let configured = self.configured_key(provider);
                configured.is_some_and(|key| value::is_resolvable(key, environment))
                    || has_key(provider, environment)
            }
        }
    }

    /// The models that the login of a provider may use, where the provider said so; `None` without such a list, and where the login is
    /// not what requests go by. Reads no files.
    #[must_use]
    pub fn available_models(&self, provider: &str) -> Option<Arc<[String]>> {
        if self.override_of(provider).is_some() {
            return None;
        }
        match self.stored().credentials.get(provider) {
            Some(StoredEntry::OAuth(login)) => login.available_models.clone(),
            _ => None,
        }
    }

    /// The credentials for requests to a model. `auth.json` is read again, so that a changed key counts at once; it may
    /// run commands of the user's.
    ///
    /// # Errors
    /// [`AuthError`]; the message is for the user. Cancel safety: a command that runs is killed when this is dropped; a login
    /// that is being renewed is renewed and stored all the same.
    pub async fn credentials(&self, model: &Model) -> Result<ProviderCredentials, AuthError> {
        self.find(model, RefusedCredentials(None)).await
    }

    /// Other credentials in the place of some that the provider refused: a login is renewed unless another program has done
    /// so, a command is run again, and what the files say now counts. `None` where all of that gives what was refused.
    ///
    /// # Errors
    /// As [`Auth::credentials`]. Cancel safety: as there.
    pub async fn renew(
        &self,
        model: &Model,
        refused: &Credentials,
    ) -> Option<Result<ProviderCredentials, AuthError>> {
        let refused_values = RefusedCredentials(Some(refused));
        self.services().commands.forget(|output| refused_values.holds(output));
        match self.find(model, refused_values).await {
            Ok(found) if found.credentials == *refused => None,
            found => Some(found),
        }
    }

    async fn find(
        &self,
        model: &Model,
        refused: RefusedCredentials<'_>,
    ) -> Result<ProviderCredentials, AuthError> {
        if model.is_placeholder() {
            return Err(AuthError::NoModel {
                empty_variables: self.empty_key_variables(),
                models_file: self.agent_dir().models_file(),
            });
        }
        let mut account = Account::default();
        let (api_key, bearer) = match self.key(model, refused).await? {
            Some(ProviderKey::Cloud(token, of_cloud)) => {
                account = of_cloud;
                (Some(token), None)
            }
            Some(ProviderKey::ApiKey(key)) => (Some(key), None),
            Some(ProviderKey::Bearer(token)) => (None, Some(token)),
            None => (None, None),
        };
        let mut headers = self.headers(model).await?;
        let provider = self.registry().provider(&model.provider);
        let as_header =
            provider.filter(|provider| provider.auth_header).and(api_key.as_ref()).or(bearer.as_ref());
        if let Some(token) = as_header.filter(|_| !sets(&headers, "authorization")) {
            headers.push(("Authorization".into(), Secret::new(format!("Bearer {}", token.expose()))));
        }
        if google::has(&model.provider) && account.location.is_none() {
            account.location = google::location(&self.environment_of(&model.provider));
        }
        account.account_id = self.account_of(model);
        let mut credentials = Credentials { api_key, headers, account, ..Credentials::default() };
        let mut base_url = self.base_url(model)?;
        if azure::has(model) {
            let configured = base_url.as_deref().unwrap_or(&model.base_url);
            let environment = self.environment_of(&model.provider);
            let wrong = |problem| AuthError::BadAddress { provider: model.provider.clone(), problem };
            let place = azure::place(model, configured, &environment).map_err(wrong)?;
            credentials.account = place.account;
            base_url = Some(place.base_url);
        }
        if aws::has(model) {
            let environment = self.environment_of(&model.provider);
            let has_key = credentials.api_key.is_some() || sets(&credentials.headers, "authorization");
            let place = aws::place(model, &environment, self, has_key, refused.0).await;
            let place =
                place.map_err(|problem| AuthError::Aws { provider: model.provider.clone(), problem })?;
            credentials.aws = place.keys;
            credentials.account = place.account;
            base_url = place.base_url.or(base_url);
        }
        register_credentials(&credentials);
        Ok(ProviderCredentials { credentials, base_url })
    }

    /// The environment with what a stored credential brings along.
    fn environment_of(&self, provider: &str) -> Environment {
        match self.stored().credentials.get(provider) {
            Some(StoredEntry::ApiKey { env, .. }) => overlay(self.environment(), env),
            _ => self.environment().clone(),
        }
    }

    /// The account that a stored login is for.
    fn account_of(&self, model: &Model) -> Option<String> {
        if self.override_of(&model.provider).is_some() {
            return None;
        }
        match self.stored().credentials.get(&model.provider) {
            Some(StoredEntry::OAuth(login)) => login.account_id.clone(),
            _ => None,
        }
    }

    /// The address with the values of its variables, which a stored credential may bring along; or the one that a login says.
    fn base_url(&self, model: &Model) -> Result<Option<String>, AuthError> {
        if model.provider == "github-copilot"
            && self.override_of(&model.provider).is_none()
            && self.registry().provider(&model.provider).is_none_or(|own| own.base_url.is_none())
            && let Some(StoredEntry::OAuth(login)) = self.stored().credentials.get(&model.provider)
        {
            return Ok(oauth::copilot_base_url(login));
        }
        if !address::has_variables(&model.base_url) {
            return Ok(None);
        }
        let environment = &self.environment_of(&model.provider);
        let missing = |variable: String| AuthError::NoAddress { provider: model.provider.clone(), variable };
        address::fill_in(&model.base_url, environment).map(Some).map_err(missing)
    }

    /// The key of the first source that has one; `None` where none is needed.
    async fn key(
        &self,
        model: &Model,
        refused: RefusedCredentials<'_>,
    ) -> Result<Option<ProviderKey>, AuthError> {
        let provider = &model.provider;
        if let Some(key) = self.override_of(provider) {
            return Ok(Some(ProviderKey::ApiKey(key)));
        }
        if self.needs_no_key(provider) {
            return Ok(None);
        }
        let environment = self.environment();
        if let Some(stored) = self.reread().await?.credentials.get(provider) {
            if let (true, StoredEntry::ApiKey { key: None, env }) = (aws::has(model), stored) {
                return Ok(provider_keys::key_of(provider, &overlay(environment, env)));
            }
            return self.stored_key(model, stored, refused).await.map(Some);
        }
        if let Some(configured) = self.configured_key(provider) {
            match self.value(configured, environment).await {
                Ok(key) => return Ok(Some(ProviderKey::ApiKey(key))),
                Err(ValueError::MissingVariable(_) | ValueError::Empty) if has_key(provider, environment) => {
                }
                Err(source) => return Err(self.unresolved(provider, &self.models_place(provider), source)),
            }
        }
        let found = self.environment_key(model, environment, refused).await?;
        if found.is_none() && aws::has(model) {
            // AWS has many other sources.
            return Ok(None);
        }
        found.map(Some).ok_or_else(|| self.no_key(model))
    }

    /// The key of the environment, or else a token made of a cloud's credentials.
    async fn environment_key(
        &self,
        model: &Model,
        environment: &Environment,
        refused: RefusedCredentials<'_>,
    ) -> Result<Option<ProviderKey>, AuthError> {
        let provider = &model.provider;
        if let Some(key) = provider_keys::key_of(provider, environment) {
            return Ok(Some(key));
        }
        let services = self.services();
        let is_refused = |token: &Secret| refused.holds(token);
        if google::has(provider) && google::is_meant(environment) {
            let found = google::token(environment, &services.http, &services.tokens, is_refused).await;
            let (token, account) =
                found.map_err(|problem| AuthError::Google { provider: provider.clone(), problem })?;
            return Ok(Some(ProviderKey::Cloud(token, account)));
        }
        if federation::is_configured(provider, environment) {
            let (http, tokens) = (&services.http, &services.tokens);
            let found = federation::token(environment, &model.base_url, http, tokens, is_refused).await;
            let token =
                found.map_err(|problem| AuthError::Federation { provider: provider.clone(), problem })?;
            return Ok(Some(ProviderKey::Bearer(token)));
        }
        Ok(None)
    }

    async fn stored_key(
        &self,
        model: &Model,
        stored: &StoredEntry,
        refused: RefusedCredentials<'_>,
    ) -> Result<ProviderKey, AuthError> {
        let (provider, file) = (model.provider.clone(), self.auth_file());
        let (key, env) = match stored {
            StoredEntry::ApiKey { key, env } => (key, env),
            StoredEntry::OAuth(login) => {
                let key = self.login_key(model, login, refused).await;
                // The renewed login may change the address of requests.
                self.reread().await?;
                return key;
            }
            StoredEntry::Unusable(problem) => {
                return Err(AuthError::UnusableEntry { provider, file, problem: problem.clone() });
            }
        };
        let environment = overlay(self.environment(), env);
        let Some(key) = key else {
            let problem = || AuthError::UnusableEntry { provider, file, problem: "it has no \"key\"".into() };
            return self.environment_key(model, &environment, refused).await?.ok_or_else(problem);
        };
        let key = self.value(key, &environment).await;
        let place = format!("the entry \"{provider}\" of {}", file.display());
        key.map(ProviderKey::ApiKey).map_err(|source| self.unresolved(&provider, &place, source))
    }

    async fn headers(&self, model: &Model) -> Result<Vec<(String, Secret)>, AuthError> {
        let (registry, environment, agent_dir) = (self.registry(), self.environment(), self.agent_dir());
        let mut headers = Vec::new();
        for (name, value) in registry.headers_of(model) {
            let Some(value) = value else {
                headers.push((name, Secret::new("")));
                continue;
            };
            let value = self.value(&value, environment).await.map_err(|source| AuthError::Header {
                provider: model.provider.clone(),
                header: name.clone(),
                file: agent_dir.models_file(),
                source,
            })?;
            headers.push((name, value));
        }
        Ok(headers)
    }

    /// Returns whether a provider wants no key of ours: the built-in demo (and not a provider of the user's by that name), and those that
    /// an extension serves with its own.
    fn needs_no_key(&self, provider: &str) -> bool {
        match self.registry().provider(provider) {
            Some(config) => config.needs_no_key,
            None => provider == DEMO_PROVIDER,
        }
    }

    /// Returns whether no provider is configured in any way: no stored credential, no variable of any provider (not even an
    /// empty one), no key of a flag. Reads no files.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let environment = self.environment();
        let stored = self.stored();
        stored.error.is_none()
            && stored.credentials.values().next().is_none()
            && !self.has_overrides()
            && self.empty_key_variables().is_empty()
            && provider_keys::key_variables().all(|name| environment.get(name).is_none())
            && provider_keys::providers().all(|provider| !has_key(provider, environment))
    }

    /// Whether there is a key of a service that is no provider of models: in `auth.json` under its name, or in a variable. Reads no files.
    #[must_use]
    pub fn has_service_key(&self, service: &str, variable: &str) -> bool {
        let is_stored = self.with_stored(|stored| {
            matches!(stored.get(service), Some(StoredEntry::ApiKey { key: Some(_), .. }))
        });
        is_stored || self.environment().non_empty(variable).is_some()
    }

    /// That key: of `auth.json`, which is read again, else of the variable. It is removed from texts from then on.
    ///
    /// # Errors
    /// [`AuthError`], for an entry that cannot be used. Cancel safety: as of [`Auth::credentials`].
    pub async fn service_key(&self, service: &str, variable: &str) -> Result<Option<Secret>, AuthError> {
        let environment = self.environment();
        let key = match self.reread().await?.credentials.get(service) {
            Some(StoredEntry::ApiKey { key: Some(key), env }) => {
                let place = format!("the entry \"{service}\" of {}", self.auth_file().display());
                let found = self.value(key, &overlay(environment, env)).await;
                Some(found.map_err(|source| self.unresolved(service, &place, source))?)
            }
            Some(StoredEntry::Unusable(problem)) => {
                let (provider, file) = (service.to_owned(), self.auth_file());
                return Err(AuthError::UnusableEntry { provider, file, problem: problem.clone() });
            }
            _ => environment.non_empty(variable).map(Secret::new),
        };
        key.iter().for_each(register_one);
        Ok(key)
    }

    fn models_place(&self, provider: &str) -> String {
        format!("\"apiKey\" of \"{provider}\" in {}", self.agent_dir().models_file().display())
    }

    fn unresolved(&self, provider: &str, place: &str, source: ValueError) -> AuthError {
        AuthError::Unresolved { provider: provider.to_owned(), place: place.to_owned(), source }
    }

    fn no_key(&self, model: &Model) -> AuthError {
        let provider = model.provider.clone();
        let variable =
            provider_keys::advice_for(&provider).map(|names| format!("set {names} in the environment, "));
        let mut advice = format!(
            "To give one, {}run `agentctl login {provider}`, or put it as {}.",
            variable.unwrap_or_default(),
            self.models_place(&provider),
        );
        if is_local(&model.base_url) {
            advice.push_str(" A server that needs no key still needs some text there, such as \"none\".");
        }
        AuthError::NoKey { provider, advice }
    }
}

/// Returns whether the environment has a key, or what a cloud's credentials take.
fn has_key(provider: &str, environment: &Environment) -> bool {
    provider_keys::variable_of(provider, environment).is_some()
        || provider_keys::cloud_variable_of(provider, environment).is_some()
}

/// Returns whether a header is among these.
fn sets(headers: &[(String, Secret)], name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// The environment with the variables of a credential over it.
pub(crate) fn overlay(environment: &Environment, env: &[(String, ConfigValue)]) -> Environment {
    let mut environment = environment.clone();
    for (name, value) in env {
        environment.set(name, value.expose());
    }
    environment
}

/// Returns whether a URL leads to this machine or its local network, where servers often want no key.
fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_unspecified(),
        Ok(std::net::IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => {
            host.eq_ignore_ascii_case("localhost") || host.ends_with(".local") || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod login_tests;
