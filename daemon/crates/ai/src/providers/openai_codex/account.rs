//! Whose subscription pays.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::{
    Credentials, Request,
    failure::{Failure, FailureKind},
};

/// The claim of the access token that tells of the account.
const CLAIM: &str = "https://api.openai.com/auth";

/// The id of the account that requests are made for: what is stored with the login, else what its token says.
///
/// # Errors
/// Says what to do where neither has one.
pub(super) fn account_id(request: &Request) -> Result<String, Failure> {
    let stored = request.credentials.account.account_id.clone().filter(|id| !id.is_empty());
    stored.or_else(|| of_token(&request.credentials)).ok_or_else(|| {
        let provider = &request.model.provider;
        Failure::new(
            FailureKind::Auth,
            format!(
                "Authentication failed for provider \"{provider}\": its access token names no ChatGPT account. This API \
                 takes logins of ChatGPT only, no API keys (those are for the provider \"openai\"): run `agentctl login \
                 {provider}`."
            ),
        )
    })
}

/// The id in the token, which is a JSON web token. It is only read here: whether it is genuine is for the server to say.
fn of_token(credentials: &Credentials) -> Option<String> {
    let mut parts = credentials.key()?.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    let id = payload.get(CLAIM)?.get("chatgpt_account_id")?.as_str()?;
    (parts.next().is_none() && !id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::model::Model;
    use serde_json::json;

    use super::*;
    use crate::{Account, Secret};

    fn id(key: &str, stored: Option<&str>) -> Result<String, Failure> {
        let model = Model { provider: "openai-codex".into(), ..Model::placeholder() };
        let mut request = Request::new(Arc::new(model), Vec::new());
        let stored = stored.map(str::to_owned);
        request.credentials = Credentials {
            api_key: Some(Secret::new(key)),
            account: Account { account_id: stored, ..Account::default() },
            ..Credentials::default()
        };
        account_id(&request)
    }

    fn token(payload: &Value) -> String {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(payload.to_string()))
    }

    #[test]
    fn the_account_is_stored_or_in_the_token() {
        let good = token(&json!({CLAIM: {"chatgpt_account_id": "acc-1"}}));
        assert_eq!(id(&good, None).unwrap(), "acc-1");
        assert_eq!(id(&good, Some("acc-2")).unwrap(), "acc-2");
        assert_eq!(id(&good, Some("")).unwrap(), "acc-1");
        let padded = good.replace(".signature", "==.signature");
        assert_eq!(id(&padded, None).unwrap(), "acc-1");
        let odd = [
            "sk-1234".to_owned(),
            "a.b.c".to_owned(),
            format!("{good}.more"),
            token(&json!({CLAIM: {"chatgpt_account_id": 7}})),
            token(&json!({CLAIM: {"chatgpt_account_id": ""}})),
            token(&json!([])),
        ];
        for key in odd {
            let failure = id(&key, None).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Auth);
            assert!(failure.message.contains("agentctl login openai-codex"), "{failure}");
            assert!(!failure.message.contains(&key), "{failure}");
        }
    }
}
