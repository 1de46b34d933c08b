//! The authorization of a server's requests: which token they carry, and what follows when one is refused.

mod refusals;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_auth::{Auth, AuthError, RenewError, Secret};
use reqwest::Url;
use tokio_util::task::TaskTracker;

use super::{
    challenge::Challenge,
    discovery::{Discovered, OAuthHttp, SearchStart, discover},
    error::OAuthError,
    machine_token::{MachineRequest, machine_token},
    renewal,
    scopes::{ScopeSources, choose},
    sign_in::{self, OpenSignIn, SignInRequest},
    store::{FileStamp, SignInStore, StoredSignIn, Tokens, key_of},
    values::ValueResolver,
};
use crate::config::{Grant, OAuthConfig};

/// How often a request is made again. Each time it has another token.
const MAX_REPEATS: u32 = 2;

/// Where the tokens of a server come from.
pub(crate) enum TokenSource {
    /// An authorization server.
    OAuth(Box<OAuthConfig>),
    /// The user's login with a provider; without credentials there is none.
    Login(String, Option<Auth>),
}

/// What the surroundings of a server give to its authorization.
pub(crate) struct AuthorizationParts {
    /// The server's name in mcp.json.
    pub(crate) name: String,
    /// Its URL as the entry has it.
    pub(crate) url: Url,
    pub(crate) source: TokenSource,
    pub(crate) http: OAuthHttp,
    pub(crate) store: SignInStore,
    pub(crate) values: ValueResolver,
    /// Where to listen for the browser, if not at this machine's own address.
    pub(crate) listen_host: Option<String>,
    /// Owns what must not be broken off.
    pub(crate) tasks: TaskTracker,
}

/// The authorization of a server's requests, for all of its connections.
pub(crate) struct Authorization {
    parts: AuthorizationParts,
    key: String,
    state: Mutex<State>,
    /// Held while tokens are made or renewed.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The file when it was read last, and what it said of the server.
    stamp: Option<FileStamp>,
    stored: Option<StoredSignIn>,
    /// Tokens without a user; they are not stored.
    machine: Option<Tokens>,
    /// What the server asked for when it refused a request without a good token.
    challenge: Option<Challenge>,
    /// Why the user must do something.
    sign_in: Option<String>,
}

/// How far one request has come.
#[derive(Debug, Default)]
pub(crate) struct RequestCourse {
    repeats: u32,
    has_renewed: bool,
}

/// What follows when a server has refused a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// The request did not run, and is to be made again: there is another token.
    Repeat,
    /// Only the user can help; the text says how.
    SignIn(String),
    /// There is no token, for this reason.
    Fail(String),
    /// The refusal has nothing to do with tokens.
    Other,
}

impl Authorization {
    pub(crate) fn new(parts: AuthorizationParts) -> Arc<Self> {
        let key = key_of(&parts.name, parts.url.as_str());
        Arc::new(Self { parts, key, state: Mutex::default(), renewing: tokio::sync::Mutex::default() })
    }

    /// Why the user must sign in, while that is so.
    pub(crate) fn needed_sign_in(&self) -> Option<String> {
        self.lock().sign_in.clone()
    }

    /// Whether the file of tokens has changed since it was read.
    pub(crate) async fn has_news(self: &Arc<Self>) -> bool {
        let store = self.parts.store.clone();
        let stamp = tokio::task::spawn_blocking(move || store.stamp()).await.ok();
        self.lock().stamp != stamp
    }

    /// The token for the next request, renewed when it is about to end; `None` where there is none.
    ///
    /// # Errors
    /// The text says why there is none although there should be.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, String> {
        let config = match &self.parts.source {
            TokenSource::Login(provider, auth) => {
                let token = login_token(provider, auth.as_ref(), None).await;
                return token.map(Some).map_err(|problem| self.without_login(&problem));
            }
            TokenSource::OAuth(config) => config,
        };
        if config.grant != Grant::AuthorizationCode {
            let tokens = self.lock().machine.clone();
            return match tokens {
                Some(tokens) if tokens.is_ending() => self
                    .make_machine_token(&tokens.access, tokens.scope)
                    .await
                    .map(Some)
                    .map_err(|error| self.fails(&error)),
                tokens => Ok(tokens.map(|tokens| tokens.access)),
            };
        }
        let Some(tokens) = self.load().await.map_err(|error| self.fails(&error))? else { return Ok(None) };
        if !tokens.is_ending() {
            return Ok(Some(tokens.access));
        }
        let (is_over, access) = (tokens.is_over(), tokens.access);
        match self.renew(access.clone()).await {
            Ok(token) => Ok(Some(token)),
            Err(_) if !is_over => Ok(Some(access)),
            Err(error) if error.may_pass() => Err(self.fails(&error)),
            // The server asks for a sign-in then.
            Err(_) => Ok(None),
        }
    }

    /// Forgets tokens that are not in the file.
    pub(crate) fn forget(&self) {
        self.lock().machine = None;
    }

    /// Takes note of a request that the server did not refuse.
    pub(crate) fn accepted(&self) {
        self.lock().sign_in = None;
    }

    /// Begins a sign-in by browser.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub(crate) async fn begin_sign_in(self: &Arc<Self>, life: Duration) -> Result<OpenSignIn, OAuthError> {
        let by_itself =
            |how: &str| OAuthError::Configuration(format!("\"{}\" signs in {how}", self.parts.name));
        let config = match &self.parts.source {
            TokenSource::Login(provider, _) => {
                return Err(by_itself(&format!(
                    "with the login of {provider}: run agentctl login {provider}"
                )));
            }
            TokenSource::OAuth(config) if config.grant != Grant::AuthorizationCode => {
                return Err(by_itself(
                    "by itself: its entry has another \"grant\" than \"authorization_code\"",
                ));
            }
            TokenSource::OAuth(config) => config,
        };
        self.load().await?;
        let (challenge, stored) = {
            let state = self.lock();
            (state.challenge.clone(), state.stored.clone())
        };
        let of_before = stored.as_ref().map(|stored| Challenge {
            resource_metadata: stored.resource_metadata.clone(),
            ..Challenge::default()
        });
        let challenge = challenge.or(of_before);
        let found = self.discover(config, challenge.as_ref()).await?;
        let secret = self.parts.values.optional("oauth.clientSecret", config.client_secret.as_ref()).await?;
        sign_in::begin(SignInRequest {
            http: self.parts.http.clone(),
            config: OAuthConfig::clone(config),
            secret,
            found,
            challenged_scope: challenge.and_then(|challenge| challenge.scope),
            stored,
            store: self.parts.store.clone(),
            key: self.key.clone(),
            listen_host: self.parts.listen_host.clone(),
            life,
        })
        .await
    }

    /// The stored tokens, read again when the file has changed.
    async fn load(self: &Arc<Self>) -> Result<Option<Tokens>, OAuthError> {
        let (store, key, before) = (self.parts.store.clone(), self.key.clone(), self.lock().stamp);
        let reading = tokio::task::spawn_blocking(move || {
            // Taken first: what is written meanwhile is read the next time.
            let stamp = store.stamp();
            if Some(stamp) == before {
                Ok(None)
            } else {
                store.read(&key).map(|stored| Some((stamp, stored)))
            }
        });
        let read = reading.await.map_err(|error| OAuthError::Store(error.to_string()))??;
        let mut state = self.lock();
        if let Some((stamp, stored)) = read {
            (state.stamp, state.stored) = (Some(stamp), stored);
        }
        Ok(state.stored.as_ref().and_then(|stored| stored.tokens.clone()))
    }

    /// New tokens in the place of those with this access token. It is done in a task of its own: tokens that were given are always stored.
    async fn renew(self: &Arc<Self>, refused: Secret) -> Result<Secret, OAuthError> {
        let this = Arc::clone(self);
        let renewing = self.parts.tasks.spawn(async move {
            let _one = this.renewing.lock().await;
            if let Some(tokens) = this.load().await?
                && tokens.access != refused
                && !tokens.is_ending()
            {
                return Ok(tokens.access);
            }
            let TokenSource::OAuth(config) = &this.parts.source else { return Err(OAuthError::NoRefreshToken) };
            let secret = this.parts.values.optional("oauth.clientSecret", config.client_secret.as_ref()).await?;
            let renewed = renewal::renew(renewal::RenewalRequest {
                http: &this.parts.http,
                store: &this.parts.store,
                key: &this.key,
                configured: super::registration::configured(config, secret.as_ref()),
                refused: &refused,
            })
            .await;
            if let Err(error) = &renewed {
                tracing::debug!(server = this.parts.name, %error, "the token of an MCP server was not renewed");
            }
            renewed
        });
        renewing.await.map_err(|_| OAuthError::Cancelled)?
    }

    /// A new token without a user, in the place of the one that was refused.
    async fn make_machine_token(
        self: &Arc<Self>,
        refused: &Secret,
        wanted: Option<String>,
    ) -> Result<Secret, OAuthError> {
        let _one = self.renewing.lock().await;
        let current = self.lock().machine.clone();
        if let Some(tokens) = current.filter(|tokens| tokens.access != *refused && !tokens.is_ending()) {
            return Ok(tokens.access);
        }
        let TokenSource::OAuth(config) = &self.parts.source else { return Err(OAuthError::NoRefreshToken) };
        let challenge = self.lock().challenge.clone();
        let found = self.discover(config, challenge.as_ref()).await?;
        let challenged = wanted.or(challenge.and_then(|challenge| challenge.scope));
        let scope = choose(ScopeSources {
            configured: config.scope.as_deref(),
            challenged: challenged.as_deref(),
            of_resource: found.scopes.as_deref(),
            of_server: found.server.scopes.as_deref(),
            before: None,
            offline: false,
        });
        let tokens = machine_token(MachineRequest {
            http: &self.parts.http,
            config,
            values: &self.parts.values,
            found: &found,
            scope: scope.as_deref(),
        })
        .await?;
        let access = tokens.access.clone();
        self.lock().machine = Some(tokens);
        Ok(access)
    }

    async fn discover(
        &self,
        config: &OAuthConfig,
        challenge: Option<&Challenge>,
    ) -> Result<Discovered, OAuthError> {
        let start = SearchStart {
            server: &self.parts.url,
            challenge,
            metadata_url: config.auth_server_metadata_url.as_deref(),
            issuer: config.issuer.as_deref(),
        };
        discover(&self.parts.http, start).await
    }

    fn fails(&self, error: &OAuthError) -> String {
        self.describe(&error.to_string())
    }

    fn describe(&self, problem: &str) -> String {
        format!("MCP server \"{}\" could not be authorized: {problem}", self.parts.name)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no token of a login.
struct NoLoginToken {
    text: String,
    /// Whether there may be one later, without the user.
    may_pass: bool,
}

/// The token of the user's login with a provider.
///
/// # Errors
/// [`NoLoginToken`].
async fn login_token(
    provider: &str,
    auth: Option<&Auth>,
    refused: Option<&Secret>,
) -> Result<Secret, NoLoginToken> {
    let Some(auth) = auth else {
        let text = format!("there is no login with {provider}");
        return Err(NoLoginToken { text, may_pass: false });
    };
    auth.token_of_login(provider, refused).await.map_err(|error| match &error {
        AuthError::Login { problem, .. } => NoLoginToken {
            text: problem.to_string(),
            may_pass: matches!(&**problem, RenewError::Endpoint(error) if error.may_pass()),
        },
        error => NoLoginToken { text: error.to_string(), may_pass: true },
    })
}
