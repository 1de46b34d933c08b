//! Reads the keys `oauth` and `auth` of an entry.

use std::collections::BTreeMap;

use agentd_http::is_loopback;
use agentd_protocol::models_file::ConfigValue;
use reqwest::Url;
use serde_json::{Map, Value};

use super::oauth_config::{ClientRegistration, Grant, IdentityProvider, OAuthConfig, SignIn};
use crate::values::command_of;

/// Reads the keys of an entry.
///
/// # Errors
/// Why they cannot be used. The text quotes no value that could be a secret.
pub(super) fn sign_in(
    entry: &Map<String, Value>,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<SignIn, String> {
    let has_header = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    let (oauth, auth) = (object(entry, "oauth")?, object(entry, "auth")?);
    let beside = |key: &str| format!("\"{key}\" and an Authorization header exclude each other: keep one");
    match (oauth, auth) {
        (Some(_), Some(_)) => Err("\"oauth\" and \"auth\" exclude each other: keep one".to_owned()),
        (Some(_), None) if has_header => Err(beside("oauth")),
        (None, Some(_)) if has_header => Err(beside("auth")),
        (Some(oauth), None) => Ok(SignIn::OAuth(Box::new(Keys { object: oauth, path: "oauth" }.oauth()?))),
        (None, Some(auth)) => {
            let provider = Keys { object: auth, path: "auth" }.needed("provider")?;
            if !is_safe(url) {
                return Err("\"auth\" sends a token: \"url\" must begin with https://, or name this machine"
                    .to_owned());
            }
            Ok(SignIn::Login(provider))
        }
        (None, None) if has_header => Ok(SignIn::Header),
        (None, None) => Ok(SignIn::OAuth(Box::default())),
    }
}

fn object<'a>(entry: &'a Map<String, Value>, key: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("\"{key}\" must be an object")),
    }
}

/// Whether a token may be sent to an address: over TLS, or to this machine.
fn is_safe(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)))
}

/// An object of an entry, and its name for errors.
struct Keys<'a> {
    object: &'a Map<String, Value>,
    path: &'static str,
}

impl Keys<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(format!("\"{}.{key}\" must be a text with something in it", self.path)),
        }
    }

    fn needed(&self, key: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| format!("\"{}\" needs \"{key}\"", self.path))
    }

    fn value(&self, key: &str) -> Result<Option<ConfigValue>, String> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        if command_of(&text).is_some_and(|command| command.trim().is_empty()) {
            return Err(format!("\"{}.{key}\" has no command after the !", self.path));
        }
        Ok(Some(ConfigValue::new(text)))
    }

    fn endpoint(&self, key: &str) -> Result<Option<String>, String> {
        let url = self.text(key)?;
        match &url {
            Some(url) if !is_safe(url) => {
                Err(format!("\"{}.{key}\" must begin with https://, or name this machine", self.path))
            }
            _ => Ok(url),
        }
    }

    fn oauth(&self) -> Result<OAuthConfig, String> {
        let config = OAuthConfig {
            client_id: self.text("clientId")?,
            client_secret: self.value("clientSecret")?,
            callback_port: self.port()?,
            callback_url: self.callback_url()?,
            scope: self.text("scope")?,
            client_name: self.text("clientName")?,
            registration: self.registration()?,
            client_metadata_url: self.client_metadata_url()?,
            auth_server_metadata_url: self.endpoint("authServerMetadataUrl")?,
            issuer: self.text("issuer")?,
            grant: self.grant()?,
        };
        if config.client_secret.is_some() && config.client_id.is_none() {
            return Err("\"oauth.clientSecret\" belongs to a \"clientId\"".to_owned());
        }
        if config.registration == ClientRegistration::MetadataDocument {
            if config.client_id.is_some() || config.client_name.is_some() {
                return Err(
                    "\"oauth.clientRegistration\": \"cimd\" excludes \"clientId\" and \"clientName\""
                        .to_owned(),
                );
            }
            if config.client_metadata_url.is_none() {
                return Err("\"oauth.clientRegistration\": \"cimd\" needs \"clientMetadataUrl\", the address of your own document"
                    .to_owned());
            }
        }
        let has_client = config.client_id.is_some();
        match &config.grant {
            Grant::AuthorizationCode => {}
            Grant::ClientCredentials { .. } | Grant::JwtBearer { .. } if !has_client => {
                return Err(
                    "\"oauth.grant\": without a sign-in by browser there must be a \"clientId\"".to_owned()
                );
            }
            Grant::ClientCredentials { private_key, .. } => {
                if private_key.is_some() == config.client_secret.is_some() {
                    return Err(
                        "\"oauth.grant\": \"client_credentials\" needs \"clientSecret\" or \"privateKey\""
                            .to_owned(),
                    );
                }
            }
            Grant::JwtBearer { assertion, assertion_file, identity_provider } => {
                let given = [assertion.is_some(), assertion_file.is_some(), identity_provider.is_some()];
                if given.into_iter().filter(|given| *given).count() != 1 {
                    return Err(
                        "\"oauth.grant\": \"jwt_bearer\" needs one of \"assertion\", \"assertionFile\" and \
                                \"identityProvider\""
                            .to_owned(),
                    );
                }
            }
        }
        Ok(config)
    }

    fn port(&self) -> Result<Option<u16>, String> {
        match self.object.get("callbackPort") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let port = value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
                port.map(Some)
                    .ok_or_else(|| "\"oauth.callbackPort\" must be a number from 1 to 65535".to_owned())
            }
        }
    }

    fn callback_url(&self) -> Result<Option<String>, String> {
        let Some(text) = self.text("callbackUrl")? else { return Ok(None) };
        let url = Url::parse(&text).ok().filter(|url| {
            let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
            url.scheme() == "http" && is_loopback(url) && is_plain
        });
        match url {
            Some(_) => Ok(Some(text)),
            None => {
                Err("\"oauth.callbackUrl\" must be an http address of this machine without a query"
                    .to_owned())
            }
        }
    }

    fn registration(&self) -> Result<ClientRegistration, String> {
        match self.text("clientRegistration")?.as_deref() {
            None | Some("auto") => Ok(ClientRegistration::Auto),
            Some("dcr") => Ok(ClientRegistration::Dynamic),
            Some("cimd") => Ok(ClientRegistration::MetadataDocument),
            Some(_) => Err("\"oauth.clientRegistration\" must be \"auto\", \"dcr\" or \"cimd\"".to_owned()),
        }
    }

    /// The address of a document is a client id, which is https with a path.
    fn client_metadata_url(&self) -> Result<Option<String>, String> {
        let Some(text) = self.text("clientMetadataUrl")? else { return Ok(None) };
        let has_path = |url: &Url| url.scheme() == "https" && url.path() != "/" && url.fragment().is_none();
        match Url::parse(&text).ok().filter(has_path) {
            Some(_) => Ok(Some(text)),
            None => Err("\"oauth.clientMetadataUrl\" must be an https address with a path".to_owned()),
        }
    }

    fn grant(&self) -> Result<Grant, String> {
        match self.text("grant")?.as_deref() {
            None | Some("authorization_code") => Ok(Grant::AuthorizationCode),
            Some("client_credentials") => {
                let signing_algorithm = self.text("signingAlgorithm")?;
                if signing_algorithm.as_deref().is_some_and(|name| !["ES256", "RS256"].contains(&name)) {
                    return Err("\"oauth.signingAlgorithm\" must be \"ES256\" or \"RS256\"".to_owned());
                }
                Ok(Grant::ClientCredentials { private_key: self.value("privateKey")?, signing_algorithm })
            }
            Some("jwt_bearer") => Ok(Grant::JwtBearer {
                assertion: self.value("assertion")?,
                assertion_file: self.text("assertionFile")?,
                identity_provider: self.identity_provider()?.map(Box::new),
            }),
            Some(_) => Err(
                "\"oauth.grant\" must be \"authorization_code\", \"client_credentials\" or \"jwt_bearer\""
                    .to_owned(),
            ),
        }
    }

    fn identity_provider(&self) -> Result<Option<IdentityProvider>, String> {
        let Some(object) = object(self.object, "identityProvider")? else { return Ok(None) };
        let keys = Keys { object, path: "oauth.identityProvider" };
        let provider = IdentityProvider {
            token_endpoint: keys
                .endpoint("tokenEndpoint")?
                .ok_or("\"oauth.identityProvider\" needs \"tokenEndpoint\"")?,
            client_id: keys.needed("clientId")?,
            client_secret: keys.value("clientSecret")?,
            id_token: keys.value("idToken")?,
            id_token_file: keys.text("idTokenFile")?,
        };
        if provider.id_token.is_some() == provider.id_token_file.is_some() {
            return Err("\"oauth.identityProvider\" needs \"idToken\" or \"idTokenFile\"".to_owned());
        }
        Ok(Some(provider))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entry: &Value) -> Result<SignIn, String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let headers = entry["headers"].as_object().into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.clone(), text(value))).collect();
        sign_in(
            entry.as_object().unwrap(),
            entry["url"].as_str().unwrap_or("https://s.example/mcp"),
            &headers,
        )
    }

    fn oauth(keys: &Value) -> Result<OAuthConfig, String> {
        match read(&json!({ "oauth": keys }))? {
            SignIn::OAuth(config) => Ok(*config),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn entries_say_how_requests_are_authorized() {
        assert_eq!(read(&json!({})), Ok(SignIn::OAuth(Box::default())));
        assert_eq!(read(&json!({"headers": {"authorization": "Bearer x"}})), Ok(SignIn::Header));
        assert_eq!(read(&json!({"auth": {"provider": "p"}})), Ok(SignIn::Login("p".into())));
        let config =
            oauth(&json!({"clientId": "c", "clientSecret": "${S}", "callbackPort": 8765, "scope": "a b",
            "callbackUrl": "http://127.0.0.1/callback", "authServerMetadataUrl": "https://as.example/m"}))
            .unwrap();
        assert_eq!((config.client_id.as_deref(), config.callback_port), (Some("c"), Some(8765)));
        assert_eq!((config.grant, config.registration), (Grant::AuthorizationCode, ClientRegistration::Auto));
    }

    #[test]
    fn what_excludes_each_other_or_is_wrong_is_named_and_no_value_quoted() {
        for (entry, says) in [
            (json!({"oauth": {}, "auth": {"provider": "hush"}}), "exclude each other"),
            (json!({"oauth": {}, "headers": {"Authorization": "hush"}}), "exclude each other"),
            (json!({"auth": {"provider": "p"}, "headers": {"Authorization": "hush"}}), "exclude each other"),
            (json!({"auth": {}}), "needs \"provider\""),
            (json!({"auth": {"provider": "p"}, "url": "http://hush.example/"}), "must begin with https://"),
            (json!({"oauth": "hush"}), "must be an object"),
            (json!({"oauth": {"clientSecret": "hush"}}), "belongs to a \"clientId\""),
            (json!({"oauth": {"clientId": "c", "clientSecret": "!"}}), "has no command"),
            (json!({"oauth": {"callbackPort": 0}}), "from 1 to 65535"),
            (json!({"oauth": {"callbackUrl": "http://127.0.0.1/cb?hush=1"}}), "without a query"),
            (json!({"oauth": {"callbackUrl": "https://hush.example/cb"}}), "of this machine"),
            (json!({"oauth": {"clientRegistration": "hush"}}), "must be \"auto\""),
            (json!({"oauth": {"clientRegistration": "cimd"}}), "clientMetadataUrl"),
            (json!({"oauth": {"clientRegistration": "cimd", "clientName": "hush"}}), "excludes"),
            (json!({"oauth": {"clientMetadataUrl": "https://hush.example/"}}), "with a path"),
            (json!({"oauth": {"authServerMetadataUrl": "http://hush.example/"}}), "must begin with https://"),
            (json!({"oauth": {"grant": "hush"}}), "\"oauth.grant\" must be"),
            (json!({"oauth": {"grant": "client_credentials"}}), "must be a \"clientId\""),
            (json!({"oauth": {"grant": "client_credentials", "clientId": "c"}}), "\"privateKey\""),
            (json!({"oauth": {"grant": "jwt_bearer", "clientId": "c"}}), "needs one of"),
            (json!({"oauth": {"scope": 7}}), "must be a text"),
        ] {
            let problem = read(&entry).unwrap_err();
            assert!(problem.contains(says) && !problem.contains("hush"), "{says:?} is missing in {problem}");
        }
    }

    #[test]
    fn a_client_can_sign_in_by_itself() {
        let config = oauth(&json!({"grant": "client_credentials", "clientId": "c", "privateKey": "${KEY}",
            "signingAlgorithm": "ES256"}))
        .unwrap();
        assert!(matches!(config.grant, Grant::ClientCredentials { private_key: Some(_), .. }));
        let provider =
            json!({"tokenEndpoint": "https://idp.example/token", "clientId": "i", "idTokenFile": "/t"});
        let config =
            oauth(&json!({"grant": "jwt_bearer", "clientId": "c", "identityProvider": provider})).unwrap();
        assert!(matches!(config.grant, Grant::JwtBearer { identity_provider: Some(_), .. }));
    }
}
