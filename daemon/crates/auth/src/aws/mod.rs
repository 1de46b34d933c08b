//! Keys of AWS: the sources that its own programs know, in their order.

mod ask;
mod chain;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod keys;
mod machine;
mod profile;
mod sso;
mod sts;

pub use ask::AwsProblem;
pub use keys::AwsCache;

use agentd_config::Environment;
use agentd_http::{Account, AwsKeys, Credentials};
use agentd_protocol::model::Model;

use crate::Auth;
use profile::{DEFAULT, Profiles};

/// The API that only AWS speaks.
const API: &str = "bedrock-converse-stream";

/// The provider of the catalogue.
const PROVIDER: &str = "amazon-bedrock";

/// The keys, account and address of a request to AWS.
pub(crate) struct AwsTarget {
    /// Keys that sign; `None` where something else authorises.
    pub(crate) keys: Option<AwsKeys>,
    /// The region, as far as it is configured.
    pub(crate) account: Account,
    /// The address in the place of AWS's own.
    pub(crate) base_url: Option<String>,
}

/// Returns whether a model is on AWS.
pub(crate) fn has(model: &Model) -> bool {
    model.api == API || model.provider == PROVIDER
}

/// The variable that says where the keys of a provider come from, by the environment alone; `None` for other providers, and where
/// there is none. A token for Bedrock is a key as others are, and no business of this.
pub(crate) fn variable_of(provider: &str, environment: &Environment) -> Option<&'static str> {
    let is_set = |name: &&str| environment.non_empty(name).is_some();
    let groups: [&[&'static str]; 5] = [
        &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
        &["AWS_PROFILE"],
        &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
        &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
        &["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
    ];
    let found = groups.into_iter().find(|group| group.iter().all(is_set));
    found.filter(|_| provider == PROVIDER).and_then(|group| group.first().copied())
}

/// The variables that can replace a key, in words; `None` for other providers.
pub(crate) fn other_variables(provider: &str) -> Option<&'static str> {
    (provider == PROVIDER).then_some("AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
}

/// Finds keys, region and address for requests to `model`. `has_key` tells that the request is already authorised; `refused`
/// are credentials that are to be replaced.
///
/// # Errors
/// [`AwsProblem`]. Cancel safety: dropping the future closes connections and kills commands.
pub(crate) async fn place(
    model: &Model,
    environment: &Environment,
    auth: &Auth,
    has_key: bool,
    refused: Option<&Credentials>,
) -> Result<AwsTarget, AwsProblem> {
    let profiles = Profiles::load(environment).await?;
    let region = region(environment, &profiles);
    let keys = if has_key || environment.non_empty("AWS_BEDROCK_SKIP_AUTH") == Some("1") {
        None
    } else {
        let refused = refused.and_then(|refused| refused.aws.as_ref());
        let of_url = standard_region(&model.base_url);
        let found = chain::keys(environment, &profiles, region.as_deref().or(of_url), auth, refused).await?;
        Some(found)
    };
    let force_cache = environment.non_empty("AWS_BEDROCK_FORCE_CACHE") == Some("1");
    let endpoints = ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"];
    let endpoint = endpoints.into_iter().find_map(|name| environment.non_empty(name));
    // An address of the user's own in models.json is the more particular one.
    let base_url = endpoint.filter(|_| standard_region(&model.base_url).is_some()).map(str::to_owned);
    // With an address of its own, the region of the catalogue's would be lost.
    let region =
        region.or_else(|| standard_region(&model.base_url).filter(|_| base_url.is_some()).map(str::to_owned));
    Ok(AwsTarget { keys, account: Account { region, force_cache, ..Account::default() }, base_url })
}

/// The configured region: variables first, then the profile.
fn region(environment: &Environment, profiles: &Profiles) -> Option<String> {
    let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let of_environment = variables.into_iter().find_map(|name| environment.non_empty(name));
    let name = environment.non_empty("AWS_PROFILE").unwrap_or(DEFAULT);
    let of_profile = || profiles.get(name)?.get("region");
    of_environment.or_else(of_profile).map(|region| region.trim().to_owned())
}

/// The region of an address of AWS's own, such as `https://bedrock-runtime.us-east-1.amazonaws.com`.
fn standard_region(base_url: &str) -> Option<&str> {
    let rest = base_url.trim().strip_prefix("https://bedrock-runtime")?;
    let rest = rest.strip_prefix("-fips").unwrap_or(rest).strip_prefix('.')?;
    let host = rest.split('/').next()?;
    host.strip_suffix(".cn").unwrap_or(host).strip_suffix(".amazonaws.com")
}

#[cfg(test)]
mod tests;
