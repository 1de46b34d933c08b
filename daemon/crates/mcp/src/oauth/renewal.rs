//! New tokens for a stored sign-in: one process at a time, and stored before they are used.

use agentd_auth::Secret;

use super::{
    discovery::OAuthHttp,
    error::OAuthError,
    store::{OAuthClient, SignInStore, StoredSignIn, Tokens},
    token_request::{ClientProof, TokenEndpoint},
};

/// What tokens are renewed with.
pub(crate) struct RenewalRequest<'a> {
    pub(crate) http: &'a OAuthHttp,
    pub(crate) store: &'a SignInStore,
    pub(crate) key: &'a str,
    /// The client of the entry.
    pub(crate) configured: Option<OAuthClient>,
    /// The access token that is of no more use.
    pub(crate) refused: &'a Secret,
}

/// Renews the tokens of a server, unless another process has done so meanwhile. What is refused for good is removed from the file.
///
/// # Errors
/// [`OAuthError`]. Cancel safety: none; the caller goes on to its end, since many servers take each refresh token once.
pub(crate) async fn renew(request: RenewalRequest<'_>) -> Result<Secret, OAuthError> {
    let RenewalRequest { http, store, key, configured, refused } = request;
    let (locked, of) = (store.clone(), key.to_owned());
    let locking = tokio::task::spawn_blocking(move || {
        let lock = locked.lock_for_renewal(&of)?;
        // Behind the lock: another process may have renewed.
        locked.read(&of).map(|stored| (lock, stored))
    });
    let (_lock, stored) = locking.await.map_err(|_| OAuthError::Cancelled)??;
    let stored = stored.ok_or(OAuthError::NoRefreshToken)?;
    let Some(tokens) = &stored.tokens else { return Err(OAuthError::NoRefreshToken) };
    if tokens.access != *refused && !tokens.is_ending() {
        return Ok(tokens.access.clone());
    }
    let refresh = tokens.refresh.clone().ok_or(OAuthError::NoRefreshToken)?;
    let client = stored.client.clone().or(configured).ok_or(OAuthError::NoRefreshToken)?;
    let endpoint = TokenEndpoint {
        http,
        url: &stored.token_endpoint,
        auth_methods: stored.token_auth_methods.as_deref(),
    };
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose()),
        ("resource", stored.resource.as_str()),
    ];
    let asked = endpoint.tokens(ClientProof::Client(&client), &fields, tokens.scope.as_deref()).await;
    match asked {
        Ok(new) => {
            let access = new.access.clone();
            let new = Tokens { refresh: new.refresh.or(Some(refresh.clone())), ..new };
            change(store, key, refresh, move |stored| StoredSignIn { tokens: Some(new), ..stored }).await?;
            Ok(access)
        }
        Err(error) if error.may_pass() => Err(error),
        Err(error) => {
            let is_client =
                matches!(&error, OAuthError::Endpoint(error) if error.name() == Some("invalid_client"));
            let without = move |stored: StoredSignIn| StoredSignIn {
                tokens: None,
                client: stored.client.filter(|_| !is_client),
                ..stored
            };
            change(store, key, refresh, without).await?;
            Err(error)
        }
    }
}

/// Changes the entry if it still has the refresh token that was used.
async fn change(
    store: &SignInStore,
    key: &str,
    used: Secret,
    change: impl FnOnce(StoredSignIn) -> StoredSignIn + Send + 'static,
) -> Result<(), OAuthError> {
    let (store, key) = (store.clone(), key.to_owned());
    let changing = tokio::task::spawn_blocking(move || {
        store.update(&key, |stored| {
            let is_same = |stored: &StoredSignIn| {
                stored.tokens.as_ref().is_some_and(|tokens| tokens.refresh.as_ref() == Some(&used))
            };
            stored.filter(is_same).map(change)
        })
    });
    changing.await.map_err(|_| OAuthError::Cancelled)?
}
