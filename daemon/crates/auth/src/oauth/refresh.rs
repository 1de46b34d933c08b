//! New tokens for a login that is there.

use agentd_http::HttpClients;
use agentd_protocol::oauth_setting::TokenFormat;
use serde_json::{Map, Value};

use super::{
    Description, StoredLogin, copilot,
    description::LoginKind,
    endpoint::{EndpointRequest, RequestKind, ask, number, text},
    error::RenewError,
    stored::now_ms,
};
use crate::Secret;

/// The assumed life of a token without a known end. It only decides when the token is renewed next.
const USUAL_LIFE_MS: i64 = 60 * 60 * 1000;

/// The changed parts of a login.
pub(crate) struct Renewed {
    /// The token to send.
    pub(crate) access: Secret,
    /// The members of the entry that change.
    pub(crate) members: Vec<(&'static str, Value)>,
}

/// Asks for new tokens, once.
///
/// # Errors
/// [`RenewError`]. Cancel safety: none. A token that was given must be stored, since many providers take each refresh token
/// once; the caller goes on to its end.
pub(crate) async fn renew(
    http: &HttpClients,
    description: Option<&Description>,
    client_secret: Option<&Secret>,
    login: &StoredLogin,
    own_base_url: Option<&str>,
) -> Result<Renewed, RenewError> {
    let way = way(description, login).map_err(RenewError::NoWay)?;
    let refresh = way.refresh;
    let Some((url, client_id)) = way.endpoint else {
        return renew_copilot(http, login, refresh, own_base_url).await;
    };
    let format = login.token_format.or(description.map(|all| all.format)).unwrap_or(TokenFormat::Form);
    let mut fields =
        vec![("grant_type", "refresh_token"), ("refresh_token", refresh.expose()), ("client_id", client_id)];
    fields.extend(client_secret.map(|secret| ("client_secret", secret.expose())));
    let more = description.map(|all| all.token_params.as_slice()).unwrap_or_default();
    fields.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let answer = ask(
        http,
        EndpointRequest { url, what: RequestKind::Post(format, &fields), bearer: None, headers: &[] },
    )
    .await?;
    let access = text(&answer, "access_token").ok_or(RenewError::NoToken)?;
    let mut members = vec![("access", access.clone().into()), ("expires", expires(&answer).into())];
    if let Some(refresh) = text(&answer, "refresh_token") {
        members.push(("refresh", refresh.into()));
    }
    Ok(Renewed { access: Secret::new(access), members })
}

/// The way to renew a login.
struct Way<'a> {
    refresh: &'a Secret,
    /// The token endpoint and the client id; none where the provider has an exchange of its own.
    endpoint: Option<(&'a str, &'a str)>,
}

/// Why a login cannot be renewed, whatever endpoints would say; `None` when it can be tried.
pub(crate) fn no_way(description: Option<&Description>, login: &StoredLogin) -> Option<&'static str> {
    way(description, login).err()
}

fn way<'a>(description: Option<&'a Description>, login: &'a StoredLogin) -> Result<Way<'a>, &'static str> {
    let refresh = login.refresh.as_ref().ok_or("it has no \"refresh\"")?;
    if description.is_some_and(|description| description.kind == LoginKind::Copilot) {
        return Ok(Way { refresh, endpoint: None });
    }
    let of_description =
        |part: fn(&Description) -> &Option<String>| description.and_then(|all| part(all).as_deref());
    let url = login.token_url.as_deref().or_else(|| of_description(|all| &all.token_url));
    let client_id = login.client_id.as_deref().or_else(|| of_description(|all| &all.client_id));
    let url = url.ok_or("nothing says where its tokens are renewed")?;
    let client_id = client_id
        .ok_or("agentd has no client id of its own to renew it with, and uses no other program's")?;
    Ok(Way { refresh, endpoint: Some((url, client_id)) })
}

/// The end of a token, from the answer that brings it.
pub(crate) fn expires(answer: &Map<String, Value>) -> i64 {
    let life = answer.get("expires_in").and_then(number).filter(|seconds| *seconds > 0.0);
    // No token lives for a hundred years; what says so must not overflow.
    let life = life.map_or(USUAL_LIFE_MS, |seconds| (seconds.min(3.2e9) * 1000.0) as i64);
    now_ms().saturating_add(life)
}

async fn renew_copilot(
    http: &HttpClients,
    login: &StoredLogin,
    github_token: &Secret,
    own_base_url: Option<&str>,
) -> Result<Renewed, RenewError> {
    let url = login.token_url.clone().unwrap_or_else(|| copilot::token_url(login.enterprise_url.as_deref()));
    let answer = copilot::short_token(http, &url, github_token).await?;
    let access = Secret::new(text(&answer, "token").ok_or(RenewError::NoToken)?);
    let ends = answer.get("expires_at").and_then(number).map(|seconds| (seconds * 1000.0) as i64);
    let ends = ends.unwrap_or_else(|| now_ms().saturating_add(USUAL_LIFE_MS));
    let mut members = vec![("access", access.expose().into()), ("expires", ends.into())];
    let renewed = StoredLogin { access: Some(access.clone()), ..login.clone() };
    let base_url = own_base_url.map(str::to_owned).or_else(|| copilot::base_url(&renewed));
    let base_url = base_url.unwrap_or_else(|| "https://api.individual.githubcopilot.com".into());
    if let Some(models) = copilot::models(http, &base_url, &access).await {
        members.push(("availableModelIds", models.into()));
    }
    Ok(Renewed { access, members })
}
