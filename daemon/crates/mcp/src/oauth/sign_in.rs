//! A sign-in by browser, from the first address to the stored tokens.

use std::time::Duration;

use agentd_auth::{
    Secret,
    browser_login::{
        Callback, CallbackOutcome, ExpectedCallback, Pkce, random_text, read_pasted, wait_for_callback,
    },
    endpoint::{address, query},
};
use agentd_http::register_secret;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::timeout,
};

use super::{
    discovery::{Discovered, OAuthHttp},
    error::OAuthError,
    metadata::ServerMetadata,
    redirect::{self, RedirectListener},
    registration::{ClientSources, client},
    scopes::{ScopeSources, choose},
    store::{OAuthClient, SignInStore, StoredSignIn, Tokens},
    token_request::{ClientProof, TokenEndpoint},
};
use crate::config::OAuthConfig;

/// What a sign-in begins with.
pub(crate) struct SignInRequest {
    pub(crate) http: OAuthHttp,
    pub(crate) config: OAuthConfig,
    /// The secret of the configured client, filled in.
    pub(crate) secret: Option<Secret>,
    pub(crate) found: Discovered,
    /// The scopes that the server asks for.
    pub(crate) challenged_scope: Option<String>,
    /// The sign-in of before.
    pub(crate) stored: Option<StoredSignIn>,
    pub(crate) store: SignInStore,
    pub(crate) key: String,
    /// Where to listen for the browser, if not at the address's own host.
    pub(crate) listen_host: Option<String>,
    /// The time that the user has.
    pub(crate) life: Duration,
}

/// What comes of a sign-in; `None` until then.
pub(crate) type SignInOutcome = watch::Receiver<Option<Result<(), OAuthError>>>;

/// A sign-in that waits for the user. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct OpenSignIn {
    /// Names it.
    pub(crate) id: String,
    /// The address that the user opens.
    pub(crate) url: String,
    /// The address that the browser comes back to.
    pub(crate) redirect_uri: String,
    expected: ExpectedCallback,
    pasted: mpsc::Sender<Callback>,
    outcome: SignInOutcome,
    work: AbortHandle,
}

impl Drop for OpenSignIn {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl OpenSignIn {
    /// Takes the address that the browser ended at, as the user pasted it.
    ///
    /// # Errors
    /// [`OAuthError::Pasted`]; the sign-in goes on.
    pub(crate) fn paste(&self, pasted: &Secret) -> Result<(), OAuthError> {
        // A code alone does not say which server gave it.
        if !pasted.expose().contains('?') {
            return Err(OAuthError::Pasted("paste the whole address that the browser ended at"));
        }
        let callback = read_pasted(pasted.expose(), &self.expected).map_err(OAuthError::Pasted)?;
        // One is enough; where there is one already, that counts.
        let _ = self.pasted.try_send(callback);
        Ok(())
    }

    /// What comes of it, for those who wait.
    pub(crate) fn outcome(&self) -> SignInOutcome {
        self.outcome.clone()
    }

    /// Waits until the tokens are stored. Cancel safe: the sign-in goes on.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub(crate) async fn finished(mut outcome: SignInOutcome) -> Result<(), OAuthError> {
        let done = outcome.wait_for(Option::is_some).await.map(|done| done.clone());
        done.ok().flatten().unwrap_or(Err(OAuthError::Cancelled))
    }
}

/// The parts of a sign-in that wait for the code.
struct Pending {
    request: SignInRequest,
    client: OAuthClient,
    is_configured: bool,
    scope: Option<String>,
    pkce: Pkce,
    redirect: RedirectListener,
    expected: ExpectedCallback,
    token_endpoint: String,
}

/// Begins a sign-in: opens the port for the browser and has a client. It goes on by itself until the tokens are stored, or its time is up.
///
/// # Errors
/// [`OAuthError`]. Cancel safety: nothing is left but a client that was registered.
pub(crate) async fn begin(request: SignInRequest) -> Result<OpenSignIn, OAuthError> {
    let server = &request.found.server;
    let lacks = |why| OAuthError::Metadata { of: server.issuer.clone(), why };
    let authorize =
        server.authorization_endpoint.as_deref().ok_or_else(|| lacks("it has no authorization endpoint"))?;
    let token_endpoint = server.token_endpoint.clone().ok_or_else(|| lacks("it has no token endpoint"))?;
    let authorize = address(authorize)?;
    address(&token_endpoint)?;
    if server.pkce_methods.as_ref().is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err(OAuthError::NoPkce(server.issuer.clone()));
    }
    let pkce = Pkce::new().ok_or(OAuthError::NoRandom)?;
    let state = random_text().ok_or(OAuthError::NoRandom)?;
    let id = random_text().ok_or(OAuthError::NoRandom)?;
    let of_server = request.stored.as_ref().filter(|stored| stored.issuer == server.issuer);
    let before = of_server.and_then(|stored| stored.client.as_ref()?.redirect_uri.as_deref());
    let redirect = redirect::open(&request.config, request.listen_host.as_deref(), before).await?;
    let sources = ClientSources {
        config: &request.config,
        secret: request.secret.as_ref(),
        stored: request.stored.as_ref(),
        redirect_uri: &redirect.uri,
    };
    let client = client(&request.http, server, sources).await?;
    // Only where the server has asked for more than was granted, the earlier scopes are asked for again.
    let wanted = of_server.and_then(|stored| stored.wanted_scope.as_deref());
    let granted = of_server.and_then(|stored| stored.tokens.as_ref()?.scope.as_deref());
    let scope = choose(ScopeSources {
        configured: request.config.scope.as_deref(),
        challenged: wanted.or(request.challenged_scope.as_deref()),
        of_resource: request.found.scopes.as_deref(),
        of_server: server.scopes.as_deref(),
        before: wanted.and(granted.or(Some(""))),
        offline: true,
    });
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("redirect_uri", redirect.uri.as_str()),
        ("state", state.as_str()),
        ("code_challenge", pkce.challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", request.found.resource.as_str()),
    ];
    fields.extend(scope.iter().map(|scope| ("scope", scope.as_str())));
    let mut url = authorize;
    let own = url.query().filter(|own| !own.is_empty()).map(|own| format!("{own}&")).unwrap_or_default();
    url.set_query(Some(&format!("{own}{}", query(&fields))));
    let expected = ExpectedCallback { path: redirect.path.clone(), state: Some(state) };
    let (sender, pasted) = mpsc::channel(1);
    let (tell, outcome) = watch::channel(None);
    let (redirect_uri, life) = (redirect.uri.clone(), request.life);
    let is_configured = request.config.client_id.is_some();
    let pending = Pending {
        request,
        client,
        is_configured,
        scope,
        pkce,
        redirect,
        expected: expected.clone(),
        token_endpoint,
    };
    let work = tokio::spawn(async move {
        let done = timeout(life, run(pending, pasted)).await.unwrap_or(Err(OAuthError::Expired));
        tell.send_replace(Some(done));
    });
    let work = work.abort_handle();
    Ok(OpenSignIn { id, url: url.into(), redirect_uri, expected, pasted: sender, outcome, work })
}

/// Waits for the user, exchanges the code and stores the tokens.
async fn run(pending: Pending, mut pasted: mpsc::Receiver<Callback>) -> Result<(), OAuthError> {
    let Pending { request, client, is_configured, scope, pkce, redirect, expected, token_endpoint } = pending;
    let RedirectListener { listener, uri, .. } = redirect;
    let came = tokio::select! {
        came = wait_for_callback(listener, expected) => came.map_err(|error| OAuthError::Listen {
            address: uri.clone(),
            problem: error.to_string(),
        })?,
        Some(pasted) = pasted.recv() => pasted,
    };
    let server = &request.found.server;
    // Words of another server are not even shown.
    check_issuer(came.issuer.as_deref(), server)?;
    let code = match came.outcome {
        CallbackOutcome::Code(code) => code,
        CallbackOutcome::Denied(words) => return Err(OAuthError::Denied(words)),
    };
    register_secret(code.expose());
    let endpoint = TokenEndpoint {
        http: &request.http,
        url: &token_endpoint,
        auth_methods: server.token_auth_methods.as_deref(),
    };
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.expose()),
        ("redirect_uri", uri.as_str()),
        ("code_verifier", pkce.verifier.expose()),
        ("resource", request.found.resource.as_str()),
    ];
    let tokens = endpoint.tokens(ClientProof::Client(&client), &fields, scope.as_deref()).await;
    let tokens = match tokens {
        Ok(tokens) => tokens,
        Err(error) => {
            let is_client =
                matches!(&error, OAuthError::Endpoint(error) if error.name() == Some("invalid_client"));
            if is_client && !is_configured {
                forget_client(&request, &client).await?;
            }
            return Err(error);
        }
    };
    save(request, (!is_configured).then_some(client), token_endpoint, tokens).await
}

/// The browser must come back from the server that it was sent to (RFC 9207). Texts are compared as they are.
fn check_issuer(named: Option<&str>, server: &ServerMetadata) -> Result<(), OAuthError> {
    match named {
        Some(issuer) if issuer != server.issuer => Err(OAuthError::WrongIssuer("\"iss\" names another one")),
        None if server.names_itself => Err(OAuthError::WrongIssuer("\"iss\" is missing")),
        _ => Ok(()),
    }
}

/// Forgets a registration that the server no longer knows, so that the next sign-in registers anew.
async fn forget_client(request: &SignInRequest, client: &OAuthClient) -> Result<(), OAuthError> {
    let (store, key, client) = (request.store.clone(), request.key.clone(), client.clone());
    let forgetting = move || {
        store.update(&key, |stored| {
            let stored = stored.filter(|stored| stored.client.as_ref() == Some(&client))?;
            Some(StoredSignIn { client: None, ..stored })
        })
    };
    tokio::task::spawn_blocking(forgetting).await.map_err(|_| OAuthError::Cancelled)?
}

async fn save(
    request: SignInRequest,
    client: Option<OAuthClient>,
    token_endpoint: String,
    tokens: Tokens,
) -> Result<(), OAuthError> {
    let SignInRequest { store, key, found, .. } = request;
    let Discovered { resource, server, resource_metadata, .. } = found;
    let signed_in = StoredSignIn {
        issuer: server.issuer,
        token_endpoint,
        token_auth_methods: server.token_auth_methods,
        resource,
        resource_metadata,
        client,
        tokens: Some(tokens),
        wanted_scope: None,
    };
    let saving = tokio::task::spawn_blocking(move || store.update(&key, |_| Some(signed_in)));
    saving.await.map_err(|_| OAuthError::Cancelled)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_comes_back_from_the_server_that_it_was_sent_to() {
        let server = |issuer: &str, names_itself| ServerMetadata {
            issuer: issuer.to_owned(),
            names_itself,
            ..ServerMetadata::fallback(&"https://s.example".parse().unwrap())
        };
        for (named, names_itself, is_right) in [
            (Some("https://a.example"), true, true),
            (Some("https://a.example"), false, true),
            (None, false, true),
            (None, true, false),
            (Some("https://a.example/"), true, false),
            (Some("https://A.example"), false, false),
            (Some("https://evil.example"), false, false),
        ] {
            let checked = check_issuer(named, &server("https://a.example", names_itself));
            assert_eq!(checked.is_ok(), is_right, "{named:?} {names_itself}");
        }
    }
}
