//! GitHub Copilot: the token of the login gives short ones, which say where requests go.

use std::time::Duration;

use agentd_http::HttpClients;
use serde_json::{Map, Value};

use super::{
    StoredLogin,
    endpoint::{EndpointError, EndpointRequest, RequestKind, ask},
};
use crate::Secret;

/// The server wants to know which program asks; it is this one.
const HEADERS: &[(&str, &str)] = &[("editor-version", concat!("agentd/", env!("CARGO_PKG_VERSION")))];

/// The timeout for the list of models; a login works without it.
const MODELS_LIMIT: Duration = Duration::from_secs(5);

/// The endpoint for short tokens, for the host of a login.
pub(super) fn token_url(enterprise: Option<&str>) -> String {
    format!("https://api.{}/copilot_internal/v2/token", enterprise.and_then(host).unwrap_or("github.com"))
}

/// The base URL of requests: from the token, else from the host of the login. `None` for the address of the catalogue.
pub(crate) fn base_url(login: &StoredLogin) -> Option<String> {
    let token = login.access.as_ref().map(Secret::expose).unwrap_or_default();
    let of_token = token.split(';').find_map(|part| part.strip_prefix("proxy-ep=")).and_then(host);
    let of_token = of_token.map(|host| {
        let host = host.strip_prefix("proxy.").map_or_else(|| host.to_owned(), |rest| format!("api.{rest}"));
        format!("https://{host}")
    });
    let of_login =
        || Some(format!("https://copilot-api.{}", login.enterprise_url.as_deref().and_then(host)?));
    of_token.or_else(of_login)
}

/// The host in an address or the host itself; `None` when it can be none.
fn host(text: &str) -> Option<&str> {
    let rest = text.trim().split_once("://").map_or(text.trim(), |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let is_of_a_host = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    (!host.is_empty() && host.chars().all(is_of_a_host)).then_some(host)
}

/// A short token for the token of a login.
///
/// # Errors
/// [`EndpointError`]. Cancel safety: as [`ask`].
pub(super) async fn short_token(
    http: &HttpClients,
    url: &str,
    github_token: &Secret,
) -> Result<Map<String, Value>, EndpointError> {
    ask(http, EndpointRequest { url, what: RequestKind::Get, bearer: Some(github_token), headers: HEADERS })
        .await
}

/// The models that the account may use; `None` when that cannot be found out, which is logged.
pub(super) async fn models(http: &HttpClients, base_url: &str, token: &Secret) -> Option<Vec<String>> {
    let url = format!("{}/models", base_url.trim_end_matches('/'));
    let asked = ask(
        http,
        EndpointRequest { url: &url, what: RequestKind::Get, bearer: Some(token), headers: HEADERS },
    );
    match tokio::time::timeout(MODELS_LIMIT, asked).await {
        Ok(Ok(answer)) => available(&answer),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the models of the account are not known");
            None
        }
        Err(_) => {
            tracing::warn!("the models of the account are not known: no answer came in time");
            None
        }
    }
}

/// The usable models of a list: those that the provider offers to choose, and that call tools.
fn available(answer: &Map<String, Value>) -> Option<Vec<String>> {
    let usable = |model: &&Value| {
        model["model_picker_enabled"] == true
            && model["policy"]["state"] != "disabled"
            && model["capabilities"]["supports"]["tool_calls"] != false
    };
    let models = answer.get("data")?.as_array()?;
    Some(models.iter().filter(usable).filter_map(|model| Some(model["id"].as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn login(access: &str, enterprise: Option<&str>) -> StoredLogin {
        StoredLogin {
            access: Some(Secret::new(access)),
            enterprise_url: enterprise.map(str::to_owned),
            ..StoredLogin::default()
        }
    }

    #[test]
    fn tokens_say_where_requests_go() {
        let check = |access: &str, enterprise, expected: Option<&str>| {
            assert_eq!(base_url(&login(access, enterprise)).as_deref(), expected, "{access}");
        };
        let proxied = "tid=1;exp=2;proxy-ep=proxy.business.example;x=y";
        check(proxied, None, Some("https://api.business.example"));
        check(proxied, Some("e.example"), Some("https://api.business.example"));
        check("proxy-ep=other.example", None, Some("https://other.example"));
        check("proxy-ep=a@b/c", None, None);
        check("tid=1", Some("https://e.example/x"), Some("https://copilot-api.e.example"));
        check("tid=1", None, None);
        assert_eq!(token_url(None), "https://api.github.com/copilot_internal/v2/token");
        assert_eq!(token_url(Some("e.example")), "https://api.e.example/copilot_internal/v2/token");
    }

    #[test]
    fn models_that_can_be_used() {
        let answer = json!({"data": [
            {"id": "a", "model_picker_enabled": true, "policy": {"state": "enabled"}},
            {"id": "b", "model_picker_enabled": false},
            {"id": "c", "model_picker_enabled": true, "policy": {"state": "disabled"}},
            {"id": "d", "model_picker_enabled": true, "capabilities": {"supports": {"tool_calls": false}}},
            {"model_picker_enabled": true},
        ]});
        assert_eq!(available(answer.as_object().unwrap()), Some(vec!["a".into()]));
        assert_eq!(available(json!({}).as_object().unwrap()), None);
    }
}
