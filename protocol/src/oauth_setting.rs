//! The member `oauth` of a provider in `models.json`: how a login with it works, and with whose client id.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::secret::ConfigValue;

/// The member: a description, or a word of another program's that has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(untagged))]
pub enum OAuthSetting {
    /// A word that other programs know.
    Word(String),
    /// The login; overrides the built-in description of the provider.
    Fields(Box<OAuthFields>),
}

/// The login with a provider (RFC 6749, 7636, 8628). Endpoints of known providers are built in, client ids are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct OAuthFields {
    /// The id that the provider gave you for this use.
    pub client_id: Option<String>,
    /// The secret that belongs to it, for the few providers that give one to programs; a value as in `apiKey`.
    pub client_secret: Option<ConfigValue>,
    /// The address that the browser opens.
    pub authorize_url: Option<String>,
    /// The endpoint that exchanges codes and refresh tokens for access tokens.
    pub token_url: Option<String>,
    /// The endpoint where a login by a code on another device begins.
    pub device_url: Option<String>,
    /// The rights that are asked for: a list, or a text with blanks between them.
    pub scopes: Option<Scopes>,
    /// The host of the redirect address that is registered with the provider; default `127.0.0.1`.
    pub redirect_host: Option<String>,
    /// Its port; default one that is free.
    pub redirect_port: Option<u16>,
    /// Its path; default `/callback`.
    pub redirect_path: Option<String>,
    /// The default flow of a login; `browser` if there is an `authorizeUrl`.
    pub flow: Option<LoginFlow>,
    /// The body format of the token endpoint; default `form`.
    pub token_format: Option<TokenFormat>,
    /// More members of the query of `authorizeUrl`.
    pub authorize_params: Option<BTreeMap<String, String>>,
    /// More fields of every request to `tokenUrl`.
    pub token_params: Option<BTreeMap<String, String>>,
}

/// The flow of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LoginFlow {
    /// A browser on this machine, which comes back to a port of it; or what it shows is pasted.
    Browser,
    /// A code that is typed into a browser anywhere.
    Device,
}

/// The body format of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TokenFormat {
    /// As a form, as RFC 6749 has it.
    #[default]
    Form,
    /// As a JSON object.
    Json,
}

/// Rights, with one blank between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(pub String);

impl<'de> Deserialize<'de> for OAuthSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) => Ok(Self::Word(word)),
            value @ Value::Object(_) => serde_path_to_error::deserialize(value)
                .map(|fields| Self::Fields(Box::new(fields)))
                .map_err(de::Error::custom),
            _ => Err(de::Error::custom("expected an object such as {\"clientId\": \"...\"}")),
        }
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || de::Error::custom("expected a list of strings, or one with blanks between");
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text.split_whitespace().collect::<Vec<_>>().join(" "))),
            Value::Array(list) => {
                let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                words.map(|words| Self(words.join(" "))).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Scopes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scopes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<OAuthSetting, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn words_stay_and_descriptions_are_read() {
        assert_eq!(read(json!("radius")), Ok(OAuthSetting::Word("radius".into())));
        let read_fields = |value| match read(value) {
            Ok(OAuthSetting::Fields(fields)) => *fields,
            other => panic!("{other:?}"),
        };
        let fields = read_fields(json!({"clientId": "c", "scopes": ["a", "b"], "flow": "device",
            "tokenFormat": "json", "redirectPort": 1455, "clientSecret": "hush", "unknown": 1}));
        assert_eq!(fields.scopes, Some(Scopes("a b".into())));
        assert_eq!((fields.flow, fields.token_format), (Some(LoginFlow::Device), Some(TokenFormat::Json)));
        assert!(!format!("{fields:?}").contains("hush"));
        assert_eq!(read_fields(json!({"scopes": " a  b "})).scopes, Some(Scopes("a b".into())));
    }

    #[test]
    fn what_is_wrong_is_named_and_not_quoted() {
        for (value, expected) in [
            (json!(4711), "expected an object such as {\"clientId\": \"...\"}"),
            (json!({"clientSecret": 4711}), "clientSecret: expected a string"),
            (json!({"scopes": [4711]}), "scopes: expected a list of strings, or one with blanks between"),
        ] {
            assert_eq!(read(value).unwrap_err(), expected);
        }
    }
}
