//! The order of AWS's credential sources, and their keys.

use agentd_config::Environment;
use agentd_http::AwsKeys;
use serde_json::Value;

use super::{
    AwsProblem,
    keys::FoundKeys,
    machine,
    profile::{self, DEFAULT, Profile, Profiles, expanded},
    sso,
    sts::{self, StsEndpoint, StsRole},
};
use crate::{Auth, Secret, command};

/// The number of profiles that may refer to each other in a row: far more than anyone configures, and an end to a circle.
const MAX_PROFILES: usize = 16;

/// The context that several sources need.
struct Context<'a> {
    environment: &'a Environment,
    profiles: &'a Profiles,
    region: Option<&'a str>,
    auth: &'a Auth,
}

/// The keys of the first source that is configured: variables, the profile, a token file with a role, the container. The instance's
/// metadata service is asked only where a profile says so: it would have to be looked for on the network.
///
/// # Errors
/// What is wrong with the source that counts, or that there is none.
pub(super) async fn keys(
    environment: &Environment,
    profiles: &Profiles,
    region: Option<&str>,
    auth: &Auth,
    refused: Option<&AwsKeys>,
) -> Result<AwsKeys, AwsProblem> {
    if let Some(found) = of_variables(environment) {
        return Ok(found.keys);
    }
    let context = Context { environment, profiles, region, auth };
    auth.services().aws.get(environment, refused, context.find()).await
}

fn of_variables(environment: &Environment) -> Option<FoundKeys> {
    let id = environment.non_empty("AWS_ACCESS_KEY_ID")?;
    let secret = environment.non_empty("AWS_SECRET_ACCESS_KEY")?;
    let token = environment.non_empty("AWS_SESSION_TOKEN").map(Secret::new);
    Some(FoundKeys::at_hand(id.trim(), Secret::new(secret.trim()), token))
}

impl Context<'_> {
    async fn find(&self) -> Result<FoundKeys, AwsProblem> {
        if let Some(name) = self.environment.non_empty("AWS_PROFILE") {
            return self.of_profile(name).await;
        }
        if self.profiles.get(DEFAULT).is_some_and(|profile| profile.has_credentials()) {
            return self.of_profile(DEFAULT).await;
        }
        if let (Some(path), Some(arn)) = (
            self.environment.non_empty("AWS_WEB_IDENTITY_TOKEN_FILE"),
            self.environment.non_empty("AWS_ROLE_ARN"),
        ) {
            let session_name = self.environment.non_empty("AWS_ROLE_SESSION_NAME");
            let role = StsRole { arn, session_name, external_id: None, duration_seconds: None };
            return self.with_token(path, &role).await;
        }
        if machine::has_container(self.environment) {
            return machine::container(self.environment, &self.auth.services().http).await;
        }
        Err(AwsProblem::new(
            "Set AWS_PROFILE to a profile of ~/.aws/config (`aws configure`, or `aws configure sso` and `aws sso login`), \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK (an API key of Bedrock). On an EC2 \
             instance with a role: `credential_source = Ec2InstanceMetadata` in the profile.",
        ))
    }

    /// The keys of a profile: the roles on the way are taken on one after the other.
    async fn of_profile(&self, name: &str) -> Result<FoundKeys, AwsProblem> {
        let mut roles = Vec::new();
        let mut name = name;
        let mut found = loop {
            let profile = self.profiles.get(name).ok_or_else(|| {
                AwsProblem::new(format!(
                    "The profile \"{name}\" is neither in {}. Check AWS_PROFILE and source_profile.",
                    self.profiles.places().replace(" and ", " nor in ")
                ))
            })?;
            let Some(role) = role_of(&profile) else { break self.plain(&profile).await? };
            if let Some(path) = profile.get("web_identity_token_file") {
                break self.with_token(path, &role).await?;
            }
            if profile.get("mfa_serial").is_some() {
                return Err(AwsProblem::new(format!(
                    "The role of the profile \"{name}\" wants a code (mfa_serial), which nobody can be asked for here. Use keys of \
                     a session (`aws sts get-session-token`), SSO, or a credential_process.",
                )));
            }
            roles.push(role);
            if roles.len() > MAX_PROFILES {
                return Err(AwsProblem::new(format!(
                    "The source_profile of \"{name}\" goes round in circles."
                )));
            }
            match (profile.get("source_profile"), profile.get("credential_source")) {
                (Some(source), _) if source == name => break self.static_keys(&profile)?,
                (Some(source), _) => name = source,
                (None, Some(source)) => break self.of_source(source, name).await?,
                (None, None) => {
                    return Err(AwsProblem::new(format!(
                        "The profile \"{name}\" has a role_arn, and neither source_profile nor credential_source says who takes \
                         the role on."
                    )));
                }
            }
        };
        let endpoint = StsEndpoint::of(self.environment.non_empty("AWS_ENDPOINT_URL_STS"), self.region);
        for role in roles.iter().rev() {
            let endpoint = endpoint.as_ref().map_err(Clone::clone)?;
            found = sts::assume(role, &found.keys, endpoint, &self.auth.services().http).await?;
        }
        Ok(found)
    }

    /// The keys of a profile without a role.
    async fn plain(&self, profile: &Profile<'_>) -> Result<FoundKeys, AwsProblem> {
        if profile.get("aws_access_key_id").is_some() {
            return self.static_keys(profile);
        }
        if profile.get("sso_session").is_some() || profile.get("sso_start_url").is_some() {
            return sso::keys(profile, self.profiles, self.environment, &self.auth.services().http).await;
        }
        if let Some(command) = profile.get("credential_process") {
            return self.of_process(command, profile.name).await;
        }
        if let Some(source) = profile.get("credential_source") {
            return self.of_source(source, profile.name).await;
        }
        Err(AwsProblem::new(format!(
            "The profile \"{}\" does not say where its keys come from: it has no keys, role_arn, sso_session, credential_process or \
             credential_source ({}).",
            profile.name,
            self.profiles.places()
        )))
    }

    fn static_keys(&self, profile: &Profile<'_>) -> Result<FoundKeys, AwsProblem> {
        let missing = |name: &str| {
            AwsProblem::new(format!(
                "The profile \"{}\" has no {name} ({}).",
                profile.name,
                self.profiles.places()
            ))
        };
        let id = profile.get("aws_access_key_id").ok_or_else(|| missing("aws_access_key_id"))?;
        let secret =
            profile.secret("aws_secret_access_key").ok_or_else(|| missing("aws_secret_access_key"))?;
        Ok(FoundKeys::at_hand(id, secret, profile.secret("aws_session_token")))
    }

    async fn of_source(&self, source: &str, profile: &str) -> Result<FoundKeys, AwsProblem> {
        match source {
            "Environment" => of_variables(self.environment).ok_or_else(|| {
                AwsProblem::new(format!(
                    "The profile \"{profile}\" takes its keys from the environment, where AWS_ACCESS_KEY_ID or \
                     AWS_SECRET_ACCESS_KEY is not set."
                ))
            }),
            "Ec2InstanceMetadata" => machine::instance(self.environment, &self.auth.services().http).await,
            "EcsContainer" => machine::container(self.environment, &self.auth.services().http).await,
            other => Err(AwsProblem::new(format!(
                "The profile \"{profile}\" has the credential_source \"{other}\", which is none of Environment, \
                 Ec2InstanceMetadata and EcsContainer."
            ))),
        }
    }

    async fn of_process(&self, process: &str, profile: &str) -> Result<FoundKeys, AwsProblem> {
        let place = format!("the credential_process of the profile \"{profile}\"");
        let environment = self.auth.environment_of_commands(self.environment).await;
        let output = command::run(process, &environment).await;
        let output =
            output.map_err(|error| AwsProblem::new(format!("No keys came from {place}: {error}.")))?;
        let wrong =
            || AwsProblem::new(format!("What came from {place} is no JSON object with \"Version\": 1."));
        let value: Value = serde_json::from_str(output.expose()).map_err(|_| wrong())?;
        if value.get("Version").and_then(Value::as_u64) != Some(1) {
            return Err(wrong());
        }
        FoundKeys::in_json(&value, &place)
    }

    async fn with_token(&self, path: &str, role: &StsRole<'_>) -> Result<FoundKeys, AwsProblem> {
        let path = expanded(path, self.environment);
        let text = profile::read_file(&path).await.map_err(|error| AwsProblem::file(&path, &error))?;
        let token = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let token = token.ok_or_else(|| {
            AwsProblem::new(format!("The token for the role {} is not in {}.", role.arn, path.display()))
        })?;
        let endpoint = StsEndpoint::of(self.environment.non_empty("AWS_ENDPOINT_URL_STS"), self.region)?;
        sts::assume_with_token(role, &Secret::new(token), &endpoint, &self.auth.services().http).await
    }
}

fn role_of<'a>(profile: &Profile<'a>) -> Option<StsRole<'a>> {
    Some(StsRole {
        arn: profile.get("role_arn")?,
        session_name: profile.get("role_session_name"),
        external_id: profile.get("external_id"),
        duration_seconds: profile.get("duration_seconds"),
    })
}
