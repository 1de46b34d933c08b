//! Requests to a token endpoint.

use agentd_auth::{
    Secret,
    endpoint::{EndpointRequest, RequestKind, query},
};
use agentd_http::register_secret;
use agentd_protocol::oauth_setting::TokenFormat;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    discovery::OAuthHttp,
    error::OAuthError,
    store::{OAuthClient, Tokens, now_ms},
    token_auth::TokenAuthMethod,
};

/// A token endpoint.
#[derive(Clone, Copy)]
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) http: &'a OAuthHttp,
    pub(crate) url: &'a str,
    /// The ways in which clients authenticate there.
    pub(crate) auth_methods: Option<&'a [String]>,
}

/// How the client authenticates.
pub(crate) enum ClientProof<'a> {
    /// By what it was registered with.
    Client(&'a OAuthClient),
    /// By a signed assertion.
    Assertion(&'a Secret),
}

impl TokenEndpoint<'_> {
    /// Asks for tokens. `scope` is what was asked for, and is kept with them.
    ///
    /// # Errors
    /// [`OAuthError`]. Cancel safety: none. Tokens that were given are lost when nobody stores them.
    pub(crate) async fn tokens(
        self,
        proof: ClientProof<'_>,
        fields: &[(&str, &str)],
        scope: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let answer = self.ask(proof, fields).await?;
        read_tokens(&answer, scope)
    }

    /// The answer of the endpoint.
    ///
    /// # Errors
    /// As [`TokenEndpoint::tokens`].
    pub(crate) async fn ask(
        self,
        proof: ClientProof<'_>,
        fields: &[(&str, &str)],
    ) -> Result<Map<String, Value>, OAuthError> {
        let mut fields = fields.to_vec();
        let mut headers = Vec::new();
        let basic;
        match proof {
            ClientProof::Assertion(assertion) => fields.extend([
                ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                ("client_assertion", assertion.expose()),
            ]),
            ClientProof::Client(client) => {
                let secret = client.secret.as_ref().map(Secret::expose);
                secret.iter().for_each(|secret| register_secret(secret));
                match (
                    TokenAuthMethod::choose(client.auth_method, secret.is_some(), self.auth_methods),
                    secret,
                ) {
                    (TokenAuthMethod::Basic, Some(secret)) => {
                        basic = basic_header(&client.id, secret);
                        headers.push(("authorization", basic.as_str()));
                    }
                    (TokenAuthMethod::Post, Some(secret)) => {
                        fields.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
                    }
                    _ => fields.push(("client_id", &client.id)),
                }
            }
        }
        let what = RequestKind::Post(TokenFormat::Form, &fields);
        Ok(self.http.ask(EndpointRequest { url: self.url, what, bearer: None, headers: &headers }).await?)
    }
}

/// The header of HTTP Basic, whose parts are encoded as in a form (RFC 6749, 2.3.1).
fn basic_header(id: &str, secret: &str) -> String {
    let encoded = |text: &str| query(&[("", text)]).trim_start_matches('=').to_owned();
    let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    register_secret(&pair);
    format!("Basic {pair}")
}

/// The tokens of an answer.
///
/// # Errors
/// [`OAuthError::BadAnswer`].
fn read_tokens(answer: &Map<String, Value>, asked: Option<&str>) -> Result<Tokens, OAuthError> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let access = text("access_token").ok_or(OAuthError::BadAnswer("it has no token"))?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(OAuthError::BadAnswer("its token is no bearer token"));
    }
    if !access.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(OAuthError::BadAnswer("its token cannot be sent in a header"));
    }
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let life = answer.get("expires_in").and_then(number).filter(|seconds| *seconds > 0.0);
    // No token lives for a hundred years; what says so must not overflow.
    let expires = life.map(|seconds| now_ms().saturating_add((seconds.min(3.2e9) * 1000.0) as i64));
    let refresh = text("refresh_token");
    [Some(access), refresh].into_iter().flatten().for_each(register_secret);
    let scope = asked.or(text("scope")).map(str::to_owned);
    Ok(Tokens { access: Secret::new(access), refresh: refresh.map(Secret::new), expires, scope })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(answer: &Value) -> Result<Tokens, OAuthError> {
        read_tokens(answer.as_object().unwrap(), Some("asked"))
    }

    #[test]
    fn answers_hold_tokens() {
        let before = now_ms();
        let tokens = read(&json!({"access_token": "hush-a", "token_type": "bearer", "expires_in": "60",
            "refresh_token": "hush-r", "scope": "granted"}))
        .unwrap();
        assert_eq!((tokens.access.expose(), tokens.refresh.as_ref().unwrap().expose()), ("hush-a", "hush-r"));
        assert!(tokens.expires.unwrap() >= before + 60_000 && tokens.expires.unwrap() <= now_ms() + 60_000);
        assert_eq!(tokens.scope.as_deref(), Some("asked"));
        assert_eq!(read(&json!({"access_token": "a", "expires_in": -1})).unwrap().expires, None);
        for answer in [
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": "a", "token_type": "DPoP"}),
            json!({"access_token": "a b"}),
        ] {
            assert!(matches!(read(&answer), Err(OAuthError::BadAnswer(_))), "{answer}");
        }
    }

    #[test]
    fn ids_and_secrets_are_encoded_before_they_are_joined() {
        let header = basic_header("a:b", "c d%");
        let pair = STANDARD.decode(header.strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), "a%3Ab:c%20d%25");
    }

    proptest! {
        #[test]
        fn a_token_of_any_life_is_one(seconds in any::<f64>()) {
            let tokens = read(&json!({"access_token": "a", "expires_in": seconds})).unwrap();
            prop_assert!(tokens.expires.is_none_or(|expires| expires >= 0));
        }
    }
}
