//! The client that signs in: configured, described by the user's document, or registered.

use agentd_auth::{
    Secret,
    endpoint::{EndpointRequest, RequestKind},
};
use agentd_http::register_secret;
use serde_json::{Value, json};

use super::{
    discovery::OAuthHttp,
    error::OAuthError,
    metadata::ServerMetadata,
    store::{OAuthClient, StoredSignIn},
    token_auth::TokenAuthMethod,
};
use crate::config::{ClientRegistration, OAuthConfig};

/// The name of the client where the entry has none.
const CLIENT_NAME: &str = "agentd";

/// What a client is chosen from.
#[derive(Clone, Copy)]
pub(crate) struct ClientSources<'a> {
    pub(crate) config: &'a OAuthConfig,
    /// The secret of the configured client, filled in.
    pub(crate) secret: Option<&'a Secret>,
    /// The sign-in of before.
    pub(crate) stored: Option<&'a StoredSignIn>,
    /// Where the browser comes back to.
    pub(crate) redirect_uri: &'a str,
}

/// The client of the entry, if there is one.
pub(crate) fn configured(config: &OAuthConfig, secret: Option<&Secret>) -> Option<OAuthClient> {
    let id = config.client_id.clone()?;
    Some(OAuthClient { id, secret: secret.cloned(), auth_method: None, redirect_uri: None })
}

/// The client that a sign-in uses; one is registered where there is no other way.
///
/// # Errors
/// [`OAuthError`].
pub(crate) async fn client(
    http: &OAuthHttp,
    server: &ServerMetadata,
    sources: ClientSources<'_>,
) -> Result<OAuthClient, OAuthError> {
    let ClientSources { config, secret, stored, redirect_uri } = sources;
    if let Some(client) = configured(config, secret) {
        // The secret must not follow a server that names another authorization server.
        return match stored.filter(|stored| stored.issuer != server.issuer) {
            Some(stored) if config.issuer.is_none() => Err(OAuthError::IssuerMismatch {
                issuer: server.issuer.clone(),
                expected: stored.issuer.clone(),
            }),
            _ => Ok(client),
        };
    }
    let document = config.client_metadata_url.as_ref();
    match (config.registration, document) {
        (ClientRegistration::Auto | ClientRegistration::MetadataDocument, Some(document))
            if server.takes_client_documents =>
        {
            return Ok(OAuthClient {
                id: document.clone(),
                secret: None,
                auth_method: None,
                redirect_uri: None,
            });
        }
        (ClientRegistration::MetadataDocument, _) => {
            return Err(OAuthError::NoClientDocuments(server.issuer.clone()));
        }
        _ => {}
    }
    // Registrations belong to their server, and to the address that the browser comes back to.
    let of_before =
        stored.filter(|stored| stored.issuer == server.issuer).and_then(|stored| stored.client.as_ref());
    if let Some(client) = of_before.filter(|client| client.redirect_uri.as_deref() == Some(redirect_uri)) {
        return Ok(client.clone());
    }
    register(http, server, config, redirect_uri).await
}

/// Registers a client (RFC 7591).
async fn register(
    http: &OAuthHttp,
    server: &ServerMetadata,
    config: &OAuthConfig,
    redirect_uri: &str,
) -> Result<OAuthClient, OAuthError> {
    let url = server
        .registration_endpoint
        .as_deref()
        .ok_or_else(|| OAuthError::NoRegistration(server.issuer.clone()))?;
    let document = json!({
        "client_name": config.client_name.as_deref().unwrap_or(CLIENT_NAME),
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": TokenAuthMethod::to_register(server.token_auth_methods.as_deref()).name(),
        "application_type": "native",
    });
    let what = RequestKind::PostJson(&document);
    let answer = http.ask(EndpointRequest { url, what, bearer: None, headers: &[] }).await?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("client_id").ok_or(OAuthError::BadAnswer("the registration has no client id"))?;
    let secret = text("client_secret");
    secret.iter().for_each(|secret| register_secret(secret));
    Ok(OAuthClient {
        id: id.to_owned(),
        secret: secret.map(Secret::new),
        auth_method: text("token_endpoint_auth_method").and_then(TokenAuthMethod::of),
        redirect_uri: Some(redirect_uri.to_owned()),
    })
}
