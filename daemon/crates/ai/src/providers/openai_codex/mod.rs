//! The responses API of ChatGPT subscriptions: the adapter for `openai-codex-responses`. Account, address and the limits of subscriptions
//! are here; all else is in [`openai_responses`](super::openai_responses).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;
use serde_json::Value;

use crate::{
    Credentials, Request,
    failure::{Failure, FailureKind},
    http::{Adapter, Explain, OutgoingRequest, Server, endpoint, unwritable},
    providers::openai_responses::{Compat, Dialect, ResponsesDecoder, body, start_headers},
    vendors::AGENT_NAME,
};

/// Speaks `openai-codex-responses`, by event streams.
pub(crate) struct OpenAiCodex;

impl Adapter for OpenAiCodex {
    type Decoder = ResponsesDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let compat = Compat::of(&request.model, Dialect::Codex);
        let mut headers = start_headers(request, &compat)?;
        headers.set("openai-beta", "responses=experimental")?;
        headers.set("originator", AGENT_NAME)?;
        headers.set("chatgpt-account-id", &account_id(request)?)?;
        headers.bearer(&request.credentials)?;
        Ok(OutgoingRequest {
            url: address(request)?,
            headers: headers.finish(&request.credentials)?,
            body: body(request, &compat).map_err(|error| unwritable(&error))?,
            sign: None,
        })
    }

    fn decoder(&self, request: &Request, server: Server) -> ResponsesDecoder {
        ResponsesDecoder::new(server, &request.model)
    }

    fn explain(&self) -> Option<Explain> {
        Some(explain)
    }
}

/// The address of requests. The configured address may hold a part of the path already.
fn address(request: &Request) -> Result<Url, Failure> {
    let base = request.model.base_url.split('?').next().unwrap_or_default().trim().trim_end_matches('/');
    let path = if base.ends_with("/codex/responses") {
        ""
    } else if base.ends_with("/codex") {
        "/responses"
    } else {
        "/codex/responses"
    };
    endpoint(&request.model, path, "https://chatgpt.com/backend-api")
}

/// The claim of the access token that names the account.
const CLAIM: &str = "https://api.openai.com/auth";

/// The id of the account that pays: the one that is stored with the login, else the one in its token.
///
/// # Errors
/// Explains what to do when both lack it.
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

/// The id in the token, a JSON web token. The server checks its signature, this function does not.
fn of_token(credentials: &Credentials) -> Option<String> {
    let mut parts = credentials.key()?.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    let id = payload.get(CLAIM)?.get("chatgpt_account_id")?.as_str()?;
    (parts.next().is_none() && !id.is_empty()).then(|| id.to_owned())
}

/// The server's codes for limits of the subscription.
const CODES: [&str; 2] = ["usage_limit_reached", "usage_not_included"];

/// Explains a limit of the subscription to the user (the text is pi's); `None` for all other refusals, rate limits included.
pub(super) fn explain(status: u16, body: &str) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    explain_at(status, body, now)
}

/// [`explain`] at a Unix time in seconds.
fn explain_at(status: u16, body: &str, now: u64) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name: &str| error.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    let code = text("code").or_else(|| text("type")).unwrap_or_default().to_ascii_lowercase();
    let plan = text("plan_type").map(str::to_ascii_lowercase);
    let seconds =
        number("resets_at").map(|at| (at - now as f64).max(0.0)).or_else(|| number("resets_in_seconds"));
    let is_limit = CODES.contains(&code.as_str()) || (status == 429 && (plan.is_some() || seconds.is_some()));
    is_limit.then(|| {
        let plan = plan.map(|plan| format!(" ({plan} plan)")).unwrap_or_default();
        let minutes = seconds.map(|seconds| (seconds / 60.0).round());
        let again = minutes.map(|minutes| format!(" Try again in ~{minutes} min.")).unwrap_or_default();
        format!("You have hit your ChatGPT usage limit{plan}.{again}")
    })
}

#[cfg(test)]
mod account_tests {
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

#[cfg(test)]
mod limits_tests {
    use super::*;
    use crate::failure::{FailureKind, classify_message};

    fn check(status: u16, body: &str, expected: Option<&str>) {
        let found = explain_at(status, body, 1_000_000);
        assert_eq!(found.as_deref(), expected, "{body}");
        if let Some(text) = found {
            assert_eq!(classify_message("openai-codex", &text), FailureKind::Fatal, "{text}");
        }
    }

    #[test]
    fn limits_of_the_plan_are_told_with_their_end() {
        check(
            429,
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"Plus",
                "resets_at":1000420,"resets_in_seconds":420}}"#,
            Some("You have hit your ChatGPT usage limit (plus plan). Try again in ~7 min."),
        );
        check(
            429,
            r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":90}}"#,
            Some("You have hit your ChatGPT usage limit. Try again in ~2 min."),
        );
        check(
            403,
            r#"{"error":{"code":"USAGE_NOT_INCLUDED","plan_type":"free","resets_at":5}}"#,
            Some("You have hit your ChatGPT usage limit (free plan). Try again in ~0 min."),
        );
        check(
            429,
            r#"{"error":{"plan_type":"pro"}}"#,
            Some("You have hit your ChatGPT usage limit (pro plan)."),
        );
    }

    #[test]
    fn limits_of_the_moment_stay_what_they_are() {
        check(429, r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}"#, None);
        check(429, r#"{"detail":"Too many requests"}"#, None);
        check(429, "<html>", None);
        check(400, r#"{"error":{"code":"invalid","plan_type":"plus"}}"#, None);
        check(429, r#"{"error":null}"#, None);
    }
}

#[cfg(test)]
mod tests;
