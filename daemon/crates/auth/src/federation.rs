//! Anthropic's workload identity: a token of another issuer is exchanged for a short one, by a rule of the organization.

use std::{io, path::Path};

use agentd_config::Environment;
use agentd_http::HttpClients;
use agentd_protocol::oauth_setting::TokenFormat;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use crate::{
    Secret,
    oauth::{EndpointError, EndpointRequest, RequestKind, ask, expires},
    tokens::{ShortToken, TokenCache},
};

/// The variables of a federated login; all must be set.
const NEEDED: [&str; 3] =
    ["ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN_FILE"];

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The longest token of another issuer that is taken.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The longest file that is read for one: it may have blanks around the token.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why there is no token. No message holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum FederationError {
    /// The token of the other issuer cannot be used.
    #[error("the identity token in {path} {problem}")]
    Identity {
        /// The file.
        path: String,
        /// The fault.
        problem: String,
    },
    /// The endpoint gave nothing.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Its answer has no token.
    #[error("the answer of the token endpoint has no token in it")]
    NoToken,
}

/// Returns whether the environment configures a federated login for this provider.
pub(crate) fn is_configured(provider: &str, environment: &Environment) -> bool {
    provider == "anthropic" && NEEDED.iter().all(|name| environment.non_empty(name).is_some())
}

/// A token, to be sent as a bearer token.
///
/// # Errors
/// [`FederationError`]. Cancel safety: the next one who asks gets the token.
pub(crate) async fn token(
    environment: &Environment,
    base_url: &str,
    http: &HttpClients,
    tokens: &TokenCache,
    is_refused: impl Fn(&Secret) -> bool,
) -> Result<Secret, FederationError> {
    let variable = |name: &str| environment.non_empty(name).unwrap_or_default();
    let [rule, organization, file] = NEEDED.map(variable);
    let account = variable("ANTHROPIC_SERVICE_ACCOUNT_ID");
    let workspace = variable("ANTHROPIC_WORKSPACE_ID");
    let url = format!("{}/v1/oauth/token", base_url.trim_end_matches('/'));
    let source = [url.as_str(), rule, organization, file, account, workspace].join("\n");
    let make = async {
        // Read each time: who puts it there renews it.
        let identity = identity(file).await?;
        let mut fields = vec![
            ("grant_type", GRANT),
            ("assertion", identity.expose()),
            ("federation_rule_id", rule),
            ("organization_id", organization),
        ];
        let more = [("service_account_id", account), ("workspace_id", workspace)];
        fields.extend(more.into_iter().filter(|(_, value)| !value.is_empty()));
        let what = RequestKind::Post(TokenFormat::Json, &fields);
        let headers = &[("anthropic-beta", "oauth-2025-04-20,oidc-federation-2026-04-01")];
        let answer = ask(http, EndpointRequest { url: &url, what, bearer: None, headers }).await?;
        let token = answer.get("access_token").and_then(|token| token.as_str());
        let token = token.filter(|token| !token.is_empty()).ok_or(FederationError::NoToken)?;
        Ok(ShortToken { token: Secret::new(token), ends_ms: expires(&answer) })
    };
    tokens.get(&source, is_refused, make).await
}

async fn identity(path: &str) -> Result<Secret, FederationError> {
    let wrong = |problem: String| FederationError::Identity { path: path.to_owned(), problem };
    let name = path.to_owned();
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_FILE_BYTES);
    let reading = tokio::task::spawn_blocking(move || {
        let path = Path::new(&name);
        let bytes = rules.read_present(path).map_err(|error| io::Error::from(error.into_problem()))?;
        String::from_utf8(bytes).map_err(io::Error::other)
    });
    let text = match reading.await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return Err(wrong(format!("cannot be read: {error}"))),
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    match text.trim() {
        "" => Err(wrong("is empty".into())),
        text if text.len() > MAX_TOKEN_BYTES => Err(wrong(format!("is longer than {MAX_TOKEN_BYTES} bytes"))),
        text => Ok(Secret::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::oauth::testing::TokenServer;

    #[tokio::test]
    async fn an_identity_is_exchanged_once() {
        let server =
            TokenServer::start(|_| (200, json!({"access_token": "hush-a", "expires_in": 3600}).to_string()));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token").display().to_string();
        let mut environment: Environment = NEEDED.into_iter().zip(["rule", "org", file.as_str()]).collect();
        environment.set("ANTHROPIC_WORKSPACE_ID", "ws");
        assert!(is_configured("anthropic", &environment) && !is_configured("openai", &environment));
        let (http, tokens) = (HttpClients::default(), TokenCache::default());
        let base = server.url("/");
        let error = token(&environment, &base, &http, &tokens, |_| false).await.unwrap_err().to_string();
        assert!(error.contains("cannot be read: No such file"), "{error}");
        fs::write(&file, " hush-id\n").unwrap();
        for _ in 0..2 {
            let found = token(&environment, &base, &http, &tokens, |_| false).await.unwrap();
            assert_eq!(found, Secret::new("hush-a"));
        }
        let asked = server.asked();
        assert_eq!((asked.len(), asked[0].target.as_str()), (1, "POST /v1/oauth/token"));
        let body: Value = serde_json::from_str(&asked[0].body).unwrap();
        let expected = json!({"grant_type": GRANT, "assertion": "hush-id", "federation_rule_id": "rule",
            "organization_id": "org", "workspace_id": "ws"});
        assert_eq!(body, expected);
        environment.remove("ANTHROPIC_ORGANIZATION_ID");
        assert!(!is_configured("anthropic", &environment));
    }
}
