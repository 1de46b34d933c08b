//! The token of a stored login, renewed when it is about to end or was refused.

use std::sync::Arc;

use agentd_http::Credentials;
use agentd_protocol::{model::Model, oauth_setting::LoginFlow};

use crate::{
    Auth, AuthError, LoginError, RenewError, Secret, StartedLogin, StoreError, StoredEntry,
    oauth::{self, Description, LoginRequest, StoredLogin, now_ms},
    provider_keys::ProviderKey,
};

/// Wire APIs that have a header of their own for keys, and take the token of a login as a bearer token only.
const KEY_HEADER_APIS: [&str; 2] = ["anthropic-messages", "google-generative-ai"];

/// Why a login did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The login itself.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The file of credentials.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The secret that belongs to the client id.
    #[error(transparent)]
    Secret(#[from] AuthError),
}

/// The credentials that a provider refused; `None` before the first request.
#[derive(Clone, Copy)]
pub(super) struct RefusedCredentials<'a>(pub(super) Option<&'a Credentials>);

impl RefusedCredentials<'_> {
    /// Returns whether this secret is among what was refused.
    pub(super) fn holds(self, secret: &Secret) -> bool {
        self.0.is_some_and(|refused| {
            let is_it = |sent: &Secret| {
                let sent = sent.expose();
                sent == secret.expose() || sent.strip_prefix("Bearer ") == Some(secret.expose())
            };
            refused.api_key.as_ref().is_some_and(is_it) || refused.headers.iter().any(|(_, sent)| is_it(sent))
        })
    }
}

impl Auth {
    /// The description of a provider's login.
    pub(crate) fn description(&self, provider: &str) -> Option<Description> {
        let own = self.registry().provider(provider).and_then(|config| config.oauth.as_deref());
        Description::of(provider, own)
    }

    /// The reason why a login cannot be used, as far as it is known without asking a server.
    pub(crate) fn login_problem(&self, provider: &str, login: &StoredLogin) -> Option<String> {
        if login.living(now_ms(), |_| false).is_some() || self.renewer_of(provider).is_some() {
            return None;
        }
        let why = oauth::no_way(self.description(provider).as_ref(), login)?;
        Some(format!("its token has ended, and {why}"))
    }

    /// The token of a login as the model's API takes it.
    pub(super) async fn login_key(
        &self,
        model: &Model,
        login: &StoredLogin,
        refused: RefusedCredentials<'_>,
    ) -> Result<ProviderKey, AuthError> {
        if let Some(renewer) = self.renewer_of(&model.provider) {
            return self.outside_key(&model.provider, renewer, refused).await;
        }
        let token = self.login_token(&model.provider, login, refused).await?;
        // The anthropic adapter knows the tokens of its own provider.
        let is_bearer = KEY_HEADER_APIS.contains(&model.api.as_str()) && model.provider != "github-copilot";
        Ok(if is_bearer { ProviderKey::Bearer(token) } else { ProviderKey::ApiKey(token) })
    }

    /// The secret that belongs to a client id, where there is one.
    async fn client_secret(
        &self,
        provider: &str,
        description: Option<&Description>,
    ) -> Result<Option<Secret>, AuthError> {
        let Some(secret) = description.and_then(|all| all.client_secret.as_ref()) else { return Ok(None) };
        let resolved = self.value(secret, self.environment()).await;
        let models = self.agent_dir().models_file();
        let place = format!("\"clientSecret\" of \"{provider}\" in {}", models.display());
        resolved.map(Some).map_err(|source| self.unresolved(provider, &place, source))
    }

    /// Begins a login with a provider, in a browser or by a code; [`Logins::finish`](crate::Logins::finish) waits for its
    /// end. `flow` is that of the provider unless it is given; `force` replaces a stored key, too.
    ///
    /// # Errors
    /// [`StartError`]. Cancel safety: nothing is left.
    pub async fn start_login(
        &self,
        provider: &str,
        flow: Option<LoginFlow>,
        force: bool,
    ) -> Result<StartedLogin, StartError> {
        let description =
            self.description(provider).ok_or_else(|| LoginError::Unknown(provider.to_owned()))?;
        let (store, name) = (self.store().clone(), provider.to_owned());
        tokio::task::spawn_blocking(move || store.check_free(&name, force))
            .await
            .map_err(|_| LoginError::Cancelled)??;
        let client_secret = self.client_secret(provider, Some(&description)).await?;
        let listen_host = self.environment().non_empty("PI_OAUTH_CALLBACK_HOST").unwrap_or("127.0.0.1");
        let begin = LoginRequest {
            provider: provider.to_owned(),
            description,
            client_secret,
            flow,
            listen_host: listen_host.to_owned(),
            own_base_url: self.registry().provider(provider).and_then(|own| own.base_url.clone()),
            store: self.store().clone(),
            force,
            http: Arc::clone(&self.services().http),
        };
        Ok(self.services().logins.begin(begin).await?)
    }

    /// The token of a stored login, renewed when it is about to end or is the `refused` one: for servers that take a provider's tokens.
    ///
    /// # Errors
    /// [`AuthError`]; among others when there is no login with the provider.
    pub async fn token_of_login(
        &self,
        provider: &str,
        refused: Option<&Secret>,
    ) -> Result<Secret, AuthError> {
        let stored = self.reread().await?;
        let Some(StoredEntry::OAuth(login)) = stored.credentials.get(provider) else {
            return Err(self.login_ended(provider, RenewError::NoWay("there is none")));
        };
        let refused =
            refused.map(|token| Credentials { api_key: Some(token.clone()), ..Credentials::default() });
        self.login_token(provider, login, RefusedCredentials(refused.as_ref())).await
    }

    async fn login_token(
        &self,
        provider: &str,
        login: &StoredLogin,
        refused: RefusedCredentials<'_>,
    ) -> Result<Secret, AuthError> {
        if let Some(token) = login.fresh(now_ms(), |access| refused.holds(access)) {
            return Ok(token.clone());
        }
        let description = self.description(provider);
        let secret = self.client_secret(provider, description.as_ref()).await?;
        let own_base_url = self.registry().provider(provider).and_then(|own| own.base_url.clone());
        let services = self.services().clone();
        let (store, name) = (self.store().clone(), provider.to_owned());
        let refused_token = login.access.clone().filter(|access| refused.holds(access));
        let runtime = tokio::runtime::Handle::current();
        // Runs on a thread of its own, since file locks block. It continues when the caller is gone: a token that was given is
        // always stored.
        let renewing = tokio::task::spawn_blocking(move || {
            store.renew_login(&name, |stored| {
                let Some(StoredEntry::OAuth(login)) = stored else {
                    return (
                        Vec::new(),
                        Err(RenewError::NoWay("it is gone from the file, or is a login no more")),
                    );
                };
                let is_refused = |access: &Secret| refused_token.as_ref() == Some(access);
                // Another program, or another task, may have renewed it while this one waited.
                if let Some(token) = login.fresh(now_ms(), is_refused) {
                    return (Vec::new(), Ok(token.clone()));
                }
                let asked = oauth::renew(
                    &services.http,
                    description.as_ref(),
                    secret.as_ref(),
                    &login,
                    own_base_url.as_deref(),
                );
                match runtime.block_on(asked) {
                    Ok(renewed) => (renewed.members, Ok(renewed.access)),
                    Err(error) => {
                        let hopeless = matches!(&error, RenewError::Endpoint(error) if !error.may_pass());
                        match login.living(now_ms(), is_refused).filter(|_| !hopeless) {
                            Some(token) => {
                                tracing::debug!(%error, provider = name, "a login was not renewed early");
                                (Vec::new(), Ok(token.clone()))
                            }
                            None => (Vec::new(), Err(error)),
                        }
                    }
                }
            })
        });
        let renewed: Result<Result<Secret, RenewError>, StoreError> = match renewing.await {
            Ok(renewed) => renewed,
            // Only when the runtime ends; no model will be asked then.
            Err(_) => Ok(Err(RenewError::NoWay("agentd is ending"))),
        };
        renewed?.map_err(|problem| self.login_ended(provider, problem))
    }

    pub(super) fn login_ended(&self, provider: &str, problem: RenewError) -> AuthError {
        let again =
            format!("`agentctl login {provider} --force` logs in again, or stores a key in its place");
        let advice = match self.description(provider) {
            Some(description) if !description.lacks_client_id() => format!("{again}."),
            _ if self.renewer_of(provider).is_some() => {
                format!(
                    "`agentctl login {provider} --oauth` logs in again, `agentctl login {provider} --force` stores a key in its \
                     place."
                )
            }
            _ => format!(
                "Renew it with the program that wrote it, or give agentd a client id (\"oauth\": {{\"clientId\": ...}} of \
                 \"{provider}\" in {}). {again}.",
                self.agent_dir().models_file().display()
            ),
        };
        AuthError::Login {
            provider: provider.to_owned(),
            file: self.auth_file(),
            problem: Box::new(problem),
            advice,
        }
    }
}
