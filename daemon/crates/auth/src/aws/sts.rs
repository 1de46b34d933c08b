//! Temporary keys of roles, from STS.

use std::time::SystemTime;

use agentd_http::{
    AwsKeys, HttpClients,
    sigv4::{self, SigningScope, encode},
};
use reqwest::{
    Url,
    header::{CONTENT_TYPE, HeaderValue},
};

use super::{
    AwsProblem,
    ask::{ServiceReply, ServiceRequest, ask, element},
    keys::{FoundKeys, time_in},
};
use crate::Secret;

const SERVICE: &str = "STS";

/// The address of STS.
pub(super) struct StsEndpoint {
    pub(super) url: Url,
    pub(super) region: String,
}

impl StsEndpoint {
    /// The service of a region, unless `configured` names another address.
    ///
    /// # Errors
    /// Names an address that is none.
    pub(super) fn of(configured: Option<&str>, region: Option<&str>) -> Result<Self, AwsProblem> {
        let region = region.unwrap_or("us-east-1").to_owned();
        let own = format!("https://sts.{region}.amazonaws.com{}", super::ask::domain_end(&region));
        let url = super::ask::address(configured.unwrap_or(&own), "AWS_ENDPOINT_URL_STS or the region")?;
        Ok(Self { url, region })
    }
}

/// A role.
pub(super) struct StsRole<'a> {
    pub(super) arn: &'a str,
    pub(super) session_name: Option<&'a str>,
    pub(super) external_id: Option<&'a str>,
    pub(super) duration_seconds: Option<&'a str>,
}

impl StsRole<'_> {
    fn parameters(&self, action: &'static str) -> Vec<(&'static str, &str)> {
        let mut parameters = vec![
            ("Action", action),
            ("Version", "2011-06-15"),
            ("RoleArn", self.arn),
            ("RoleSessionName", self.session_name.unwrap_or("agentd")),
        ];
        parameters.extend(self.duration_seconds.map(|seconds| ("DurationSeconds", seconds)));
        parameters
    }
}

/// Takes on a role by other keys.
///
/// # Errors
/// What STS says. A clock that is wrong is made up for once.
pub(super) async fn assume(
    role: &StsRole<'_>,
    keys: &AwsKeys,
    endpoint: &StsEndpoint,
    http: &HttpClients,
) -> Result<FoundKeys, AwsProblem> {
    let mut parameters = role.parameters("AssumeRole");
    parameters.extend(role.external_id.map(|id| ("ExternalId", id)));
    let body = form(&parameters);
    let mut is_corrected = false;
    loop {
        let mut question = question(endpoint, body.clone());
        let scope = SigningScope { region: &endpoint.region, service: "sts" };
        let now = http.clocks().now(&endpoint.url);
        sigv4::sign("POST", &endpoint.url, &mut question.headers, body.as_bytes(), keys, scope, now)
            .map_err(|error| AwsProblem::new(format!("The request to STS cannot be signed: {error}.")))?;
        let reply = ask(question, http).await?;
        let of_time = reply.status == 403 && reply.text.contains("Signature");
        if of_time
            && !is_corrected
            && let Some(date) = &reply.date
            && http.clocks().learn(&endpoint.url, date, reply.received).is_some()
        {
            is_corrected = true;
            continue;
        }
        return found(&reply, role);
    }
}

/// Takes on a role by a token that an identity provider gave.
///
/// # Errors
/// What STS says.
pub(super) async fn assume_with_token(
    role: &StsRole<'_>,
    token: &Secret,
    endpoint: &StsEndpoint,
    http: &HttpClients,
) -> Result<FoundKeys, AwsProblem> {
    let mut parameters = role.parameters("AssumeRoleWithWebIdentity");
    parameters.push(("WebIdentityToken", token.expose()));
    let reply = ask(question(endpoint, form(&parameters)), http).await?;
    let problem = |problem: AwsProblem| {
        // Nothing of the token comes back to the user, whatever the service repeats.
        AwsProblem::new(problem.to_string().replace(token.expose(), "[redacted]"))
    };
    found(&reply, role).map_err(problem)
}

fn question(endpoint: &StsEndpoint, body: String) -> ServiceRequest<'static> {
    let mut question = ServiceRequest::post(SERVICE, endpoint.url.clone(), body);
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    question.headers.insert(CONTENT_TYPE, form);
    question
}

fn form(parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", encode(value.as_bytes()))).collect();
    pairs.join("&")
}

fn found(reply: &ServiceReply, role: &StsRole<'_>) -> Result<FoundKeys, AwsProblem> {
    if reply.status != 200 {
        return Err(reply.refusal(&format!("STS, asked for the role {},", role.arn)));
    }
    let member = |name: &str| {
        let missing = || AwsProblem::new(format!("The answer of STS has no {name}."));
        element(&reply.text, name).ok_or_else(missing)
    };
    let keys = AwsKeys {
        access_key_id: member("AccessKeyId")?,
        secret_access_key: Secret::new(member("SecretAccessKey")?),
        session_token: Some(Secret::new(member("SessionToken")?)),
    };
    let expires: Option<SystemTime> = element(&reply.text, "Expiration").and_then(|text| time_in(&text));
    Ok(FoundKeys { keys, expires, is_at_hand: false })
}
