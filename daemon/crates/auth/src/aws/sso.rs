//! Keys by a login that `aws sso login` made: its token lies in a file, and is renewed where it can be.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use agentd_config::Environment;
use agentd_http::{HttpClients, sigv4::encode};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::{
    AwsProblem,
    ask::{ServiceRequest, ask},
    keys::{FoundKeys, text_of, time_in},
    profile::{self, Profile, Profiles, home},
};

/// A token is renewed when it has less than this left.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// The login settings of a profile.
struct Login<'a> {
    /// The name that the token's file is called after.
    name: &'a str,
    region: &'a str,
    account: &'a str,
    role: &'a str,
    /// The advice on how to log in again.
    advice: String,
}

impl<'a> Login<'a> {
    fn of(profile: &Profile<'a>, profiles: &'a Profiles) -> Result<Self, AwsProblem> {
        let missing = |what: &str| {
            AwsProblem::new(format!(
                "The profile \"{}\" logs in by SSO and has no {what}: `aws configure sso` writes what it needs into {}.",
                profile.name,
                profiles.places()
            ))
        };
        let (name, region) = match profile.get("sso_session") {
            Some(name) => {
                let session = profiles
                    .sso_session(name)
                    .ok_or_else(|| missing(&format!("section [sso-session {name}] to go with it")))?;
                (name, session.get("sso_region").map(String::as_str))
            }
            None => (profile.get("sso_start_url").unwrap_or_default(), profile.get("sso_region")),
        };
        Ok(Self {
            name,
            region: region.filter(|region| !region.is_empty()).ok_or_else(|| missing("sso_region"))?,
            account: profile.get("sso_account_id").ok_or_else(|| missing("sso_account_id"))?,
            role: profile.get("sso_role_name").ok_or_else(|| missing("sso_role_name"))?,
            advice: format!("Log in again: aws sso login --profile {}", profile.name),
        })
    }
}

/// The keys of a profile's login.
///
/// # Errors
/// Says what is missing, and how to log in again.
pub(super) async fn keys(
    profile: &Profile<'_>,
    profiles: &Profiles,
    environment: &Environment,
    http: &HttpClients,
) -> Result<FoundKeys, AwsProblem> {
    let login = Login::of(profile, profiles)?;
    let token = token(&login, environment, http).await?;
    let own =
        format!("https://portal.sso.{}.amazonaws.com{}", login.region, super::ask::domain_end(login.region));
    let base = environment.non_empty("AWS_ENDPOINT_URL_SSO").unwrap_or(&own).trim_end_matches('/');
    let url = format!(
        "{base}/federation/credentials?role_name={}&account_id={}",
        encode(login.role.as_bytes()),
        encode(login.account.as_bytes())
    );
    let mut question =
        ServiceRequest::get("SSO", super::ask::address(&url, "AWS_ENDPOINT_URL_SSO or sso_region")?);
    let mut value = HeaderValue::try_from(&token)
        .map_err(|_| AwsProblem::new(format!("The token of the SSO login is damaged. {}", login.advice)))?;
    value.set_sensitive(true);
    question.headers.insert(HeaderName::from_static("x-amz-sso_bearer_token"), value);
    let reply = ask(question, http).await?;
    if reply.status == 401 {
        return Err(AwsProblem::new(format!("The SSO login is not valid any more. {}", login.advice)));
    }
    let answer = reply
        .json("SSO")
        .map_err(|problem| AwsProblem::new(problem.to_string().replace(&token, "[redacted]")))?;
    FoundKeys::in_json(answer.get("roleCredentials").unwrap_or(&Value::Null), "SSO")
}

/// The login's token.
async fn token(
    login: &Login<'_>,
    environment: &Environment,
    http: &HttpClients,
) -> Result<String, AwsProblem> {
    let home = home(environment).ok_or_else(|| {
        AwsProblem::new("HOME is not set, and the login of SSO is in its folder .aws/sso/cache.")
    })?;
    let path = home.join(".aws/sso/cache").join(format!("{}.json", sha1(login.name)));
    let none = || AwsProblem::new(format!("There is no SSO login for \"{}\". {}", login.name, login.advice));
    let text =
        profile::read_file(&path).await.map_err(|error| AwsProblem::file(&path, &error))?.ok_or_else(none)?;
    let mut cached: Value = serde_json::from_str(&text).map_err(|_| none())?;
    let member = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let end = member(&cached, "expiresAt").and_then(|end| time_in(&end));
    let left = end.and_then(|end| end.duration_since(SystemTime::now()).ok());
    let token = member(&cached, "accessToken");
    if let (Some(token), Some(_)) = (&token, left.filter(|left| *left > MARGIN)) {
        return Ok(token.clone());
    }
    let expired = || AwsProblem::new(format!("The SSO login has expired. {}", login.advice));
    let parts = ["clientId", "clientSecret", "refreshToken"].map(|name| member(&cached, name));
    let renewed = match parts {
        [Some(id), Some(secret), Some(refresh)] => {
            renew(login, [&id, &secret, &refresh], environment, http).await
        }
        _ => Err(expired()),
    };
    let renewed = match (renewed, token, left) {
        (Ok(renewed), _, _) => renewed,
        // A token that is good for some more minutes is good enough.
        (Err(problem), Some(token), Some(_)) => {
            tracing::warn!(%problem, "an SSO login could not be renewed in time");
            return Ok(token);
        }
        (Err(problem), _, _) => return Err(problem),
    };
    let token = member(&renewed, "accessToken").ok_or_else(expired)?;
    let seconds = renewed.get("expiresIn").and_then(Value::as_u64).unwrap_or(3600).min(365 * 86_400);
    cached["accessToken"] = token.as_str().into();
    cached["expiresAt"] = text_of(SystemTime::now() + Duration::from_secs(seconds)).into();
    if let Some(refresh) = member(&renewed, "refreshToken") {
        cached["refreshToken"] = refresh.into();
    }
    if let Err(error) = profile::replace_file(path, cached.to_string()).await {
        tracing::warn!(%error, "a renewed SSO login could not be stored");
    }
    Ok(token)
}

/// A new token for the old one's refresh token.
async fn renew(
    login: &Login<'_>,
    [id, secret, refresh]: [&str; 3],
    environment: &Environment,
    http: &HttpClients,
) -> Result<Value, AwsProblem> {
    let own = format!("https://oidc.{}.amazonaws.com{}", login.region, super::ask::domain_end(login.region));
    let base = environment.non_empty("AWS_ENDPOINT_URL_SSO_OIDC").unwrap_or(&own).trim_end_matches('/');
    let url = super::ask::address(&format!("{base}/token"), "AWS_ENDPOINT_URL_SSO_OIDC or sso_region")?;
    let body = json!({ "grantType": "refresh_token", "clientId": id, "clientSecret": secret, "refreshToken": refresh });
    let mut question = ServiceRequest::post("SSO", url, body.to_string());
    question.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let reply = ask(question, http).await?;
    reply.json("SSO").map_err(|problem| {
        let said = problem.to_string().replace(secret, "[redacted]").replace(refresh, "[redacted]");
        AwsProblem::new(format!(
            "The SSO login has expired and could not be renewed ({said}). {}",
            login.advice
        ))
    })
}

/// The name of a token's file.
fn sha1(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tokens_are_called_as_the_vendors_program_does_it() {
        assert_eq!(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
