//! The authorisation of a request, and its account.

use std::fmt;

use agentd_protocol::secret::Secret;

/// The authorisation of a request. `Debug` shows none of the secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The API key, or the access token of a login: sent as the API wants it.
    pub api_key: Option<Secret>,
    /// Headers configured for the provider or the model; they win over the adapter's own. One without a value takes
    /// that of the adapter away.
    pub headers: Vec<(String, Secret)>,
    /// Keys that sign requests instead of being sent (AWS).
    pub aws: Option<AwsKeys>,
    /// The region, project or deployment that the request belongs to.
    pub account: Account,
}

/// Keys of AWS, for signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    /// Names the key; sent with each request.
    pub access_key_id: String,
    /// Signs; never sent.
    pub secret_access_key: Secret,
    /// Comes with keys that are valid for a while only; sent.
    pub session_token: Option<Secret>,
}

/// The settings that some providers need beside a key: region, project, deployment. No secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The region of AWS, such as `eu-central-1`.
    pub region: Option<String>,
    /// True if Bedrock is asked to cache prompts also of models that are not known to (`AWS_BEDROCK_FORCE_CACHE`).
    pub force_cache: bool,
    /// The project of Google Cloud.
    pub project: Option<String>,
    /// The location of Google Cloud, such as `europe-west4` or `global`.
    pub location: Option<String>,
    /// The value of Azure's `api-version`.
    pub api_version: Option<String>,
    /// The name of Azure's deployment of the model.
    pub deployment: Option<String>,
    /// The account of a login that is good for several, such as that of ChatGPT.
    pub account_id: Option<String>,
}

impl Credentials {
    /// The key without surrounding white space; `None` for one that is empty.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Credentials")
            .field("api_key", &self.api_key)
            .field("headers", &names)
            .field("aws", &self.aws)
            .field("account", &self.account)
            .finish()
    }
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_no_secret() {
        let credentials = Credentials {
            api_key: Some(Secret::new("hush-1")),
            headers: vec![("x-token".into(), Secret::new("hush-2"))],
            aws: Some(AwsKeys {
                access_key_id: "hush-3".into(),
                secret_access_key: Secret::new("hush-4"),
                session_token: Some(Secret::new("hush-5")),
            }),
            account: Account { region: Some("eu-central-1".into()), ..Account::default() },
        };
        let shown = format!("{credentials:?}");
        assert!(shown.contains("x-token") && shown.contains("eu-central-1"), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }
}
