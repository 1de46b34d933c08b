//! Tokens without a user: the client's own credentials, or an assertion that another program has.

use std::path::{Path, PathBuf};

use agentd_auth::{JwtAlgorithm, JwtError, Secret, browser_login::random_text, sign_jwt};
use agentd_http::register_secret;
use agentd_protocol::models_file::ConfigValue;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde_json::{Map, Value, json};

use super::{
    discovery::{Discovered, OAuthHttp},
    error::OAuthError,
    registration::configured,
    store::{OAuthClient, Tokens, now_ms},
    token_request::{ClientProof, TokenEndpoint},
    values::ValueResolver,
};
use crate::config::{Grant, IdentityProvider, OAuthConfig};

/// The life of an assertion that agentd signs, in seconds.
const ASSERTION_LIFE: i64 = 300;

/// The largest file of a token.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// What a token is asked for with.
pub(crate) struct MachineRequest<'a> {
    pub(crate) http: &'a OAuthHttp,
    pub(crate) config: &'a OAuthConfig,
    pub(crate) values: &'a ValueResolver,
    pub(crate) found: &'a Discovered,
    pub(crate) scope: Option<&'a str>,
}

/// Asks for a token. Once: an authorization server that refuses will refuse again.
///
/// # Errors
/// [`OAuthError`].
pub(crate) async fn machine_token(request: MachineRequest<'_>) -> Result<Tokens, OAuthError> {
    let MachineRequest { http, config, values, found, scope } = request;
    let server = &found.server;
    let url = server.token_endpoint.as_deref();
    let url =
        url.ok_or(OAuthError::Metadata { of: server.issuer.clone(), why: "it has no token endpoint" })?;
    let endpoint = TokenEndpoint { http, url, auth_methods: server.token_auth_methods.as_deref() };
    let secret = values.optional("oauth.clientSecret", config.client_secret.as_ref()).await?;
    let no_client = || OAuthError::Configuration("\"oauth\" has no \"clientId\"".to_owned());
    let client = configured(config, secret.as_ref()).ok_or_else(no_client)?;
    let mut fields = vec![("resource", found.resource.as_str())];
    fields.extend(scope.map(|scope| ("scope", scope)));
    match &config.grant {
        Grant::AuthorizationCode => {
            Err(OAuthError::Configuration("the grant of the entry needs a user".to_owned()))
        }
        Grant::ClientCredentials { private_key, signing_algorithm } => {
            fields.push(("grant_type", "client_credentials"));
            match private_key {
                None => endpoint.tokens(ClientProof::Client(&client), &fields, scope).await,
                Some(key) => {
                    let key = values.resolve("oauth.privateKey", key).await?;
                    let assertion =
                        client_assertion(&client.id, &server.issuer, &key, signing_algorithm.as_deref())?;
                    endpoint.tokens(ClientProof::Assertion(&assertion), &fields, scope).await
                }
            }
        }
        Grant::JwtBearer { assertion, assertion_file, identity_provider } => {
            let assertion = match identity_provider {
                Some(provider) => exchange(http, values, provider, found, scope).await?,
                None => {
                    given(values, ("oauth.assertion", assertion.as_ref()), assertion_file.as_deref()).await?
                }
            };
            fields.extend([
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion.expose()),
            ]);
            endpoint.tokens(ClientProof::Client(&client), &fields, scope).await
        }
    }
}

/// A token of the entry, or of a file that another program keeps.
async fn given(
    values: &ValueResolver,
    (name, value): (&'static str, Option<&ConfigValue>),
    file: Option<&str>,
) -> Result<Secret, OAuthError> {
    if let Some(value) = value {
        return values.resolve(name, value).await;
    }
    let path = values.path(file.unwrap_or_default());
    let reading = tokio::task::spawn_blocking(move || read_token(path));
    reading.await.map_err(|error| OAuthError::Configuration(error.to_string()))?
}

fn read_token(path: PathBuf) -> Result<Secret, OAuthError> {
    // Such files are often the system's, behind a link.
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_TOKEN_FILE);
    let problem = |what: &dyn std::fmt::Display, path: &Path| {
        OAuthError::Configuration(format!("{} cannot be read: {what}", path.display()))
    };
    let bytes = rules
        .read_present(&path)
        .map_err(|error| problem(&std::io::Error::from(error.into_problem()), &path))?;
    let text = String::from_utf8(bytes).map_err(|_| problem(&"it is no text", &path))?;
    register_secret(text.trim());
    Ok(Secret::new(text.trim()))
}

/// Proves the client by its key (RFC 7523, `private_key_jwt`).
fn client_assertion(
    client_id: &str,
    audience: &str,
    key: &Secret,
    algorithm: Option<&str>,
) -> Result<Secret, OAuthError> {
    let now = now_ms() / 1000;
    let claims = json!({"iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + ASSERTION_LIFE,
        "jti": random_text().ok_or(OAuthError::NoRandom)?});
    let claims = claims.as_object().cloned().unwrap_or_default();
    let sign = |algorithm| sign_jwt(key.expose(), algorithm, None, &claims);
    let signed = match algorithm {
        Some("RS256") => sign(JwtAlgorithm::Rs256),
        Some(_) => sign(JwtAlgorithm::Es256),
        // The key itself says what it is for.
        None => match sign(JwtAlgorithm::Es256) {
            Err(JwtError::Key(_)) => sign(JwtAlgorithm::Rs256),
            signed => signed,
        },
    };
    let signed =
        signed.map_err(|error| OAuthError::Configuration(format!("\"oauth.privateKey\": {error}")))?;
    Ok(Secret::new(signed))
}

/// Has the identity provider exchange the user's identity token for an assertion to the authorization server.
async fn exchange(
    http: &OAuthHttp,
    values: &ValueResolver,
    provider: &IdentityProvider,
    found: &Discovered,
    scope: Option<&str>,
) -> Result<Secret, OAuthError> {
    let name = "oauth.identityProvider.clientSecret";
    let secret = values.optional(name, provider.client_secret.as_ref()).await?;
    let id_token = ("oauth.identityProvider.idToken", provider.id_token.as_ref());
    let subject = given(values, id_token, provider.id_token_file.as_deref()).await?;
    let client =
        OAuthClient { id: provider.client_id.clone(), secret, auth_method: None, redirect_uri: None };
    let mut fields = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("subject_token", subject.expose()),
        ("audience", found.server.issuer.as_str()),
        ("resource", found.resource.as_str()),
    ];
    fields.extend(scope.map(|scope| ("scope", scope)));
    let endpoint = TokenEndpoint { http, url: &provider.token_endpoint, auth_methods: None };
    let answer: Map<String, Value> = endpoint.ask(ClientProof::Client(&client), &fields).await?;
    let assertion = answer.get("access_token").and_then(Value::as_str).filter(|text| !text.is_empty());
    let assertion = assertion.ok_or(OAuthError::BadAnswer("the identity provider gives no assertion"))?;
    register_secret(assertion);
    Ok(Secret::new(assertion))
}
