//! Keys of providers: storing them, taking them back, and where they come from. No answer ever holds a key.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::{oauth_setting::LoginFlow, secret::Secret};

/// The fields of `login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginParams {
    /// The provider, as models name it.
    pub provider: String,
    /// The key, as the provider gave it: nothing in it is taken for a variable or a command.
    #[serde(serialize_with = "write_secret", deserialize_with = "read_secret")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub key: Secret,
    /// Variables that belong to the key, such as an account, by name; they come before those of the environment.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "write_secrets",
        deserialize_with = "read_secrets"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub env: BTreeMap<String, Secret>,
    /// Stores it for a provider that is not known, and in the place of what is no key; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The answer to `login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Login {
    /// The provider.
    pub provider: String,
    /// The path of `auth.json`.
    pub file: String,
    /// Whether there was an entry for the provider before.
    pub replaced: bool,
    /// The number of the provider's models that are offered now.
    pub models: u64,
    /// Notes about it, such as a variable that is needed too. Sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The fields of `login_start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginStartParams {
    /// The provider, as models name it.
    pub provider: String,
    /// The flow of the login; default the usual one of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<LoginFlow>,
    /// Puts the login in the place of a stored key, too; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The answer to `login_start`: what the user does now, while `login_finish` waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginStarted {
    /// Names the login.
    pub login_id: String,
    /// The provider.
    pub provider: String,
    /// The flow of the login; absent where an extension of the session logs in: it asks by dialogs, and tells the rest by `login_update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<LoginFlow>,
    /// The address for the user to open in a browser: `http` or `https`. Absent where an extension asks something first, or needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What an extension says to do there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The code for the user to type there: in the flow `device`, and where an extension names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_code: Option<String>,
    /// Where the browser comes back to, on the daemon's machine; of the flow `browser`. From another machine it cannot: then
    /// the user pastes the address that the browser ended at, or the code that it shows (`login_finish` with `code`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The time limit of the login in seconds; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// What an extension tells of a login that it does, after the answer to `login_start`. It may come a moment before that answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginUpdate {
    /// The login.
    pub login_id: String,
    /// The provider.
    pub provider: String,
    /// An address for the user to open in a browser: `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What to do there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The code for the user to type there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_code: Option<String>,
    /// How far the login is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The fields of `login_finish`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginFinishParams {
    /// The login.
    pub login_id: String,
    /// The address or code that the user pasted. A useless one is refused, and the login continues. A login of an extension asks for it
    /// by a dialog.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_optional_secret",
        deserialize_with = "read_optional_secret"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub code: Option<Secret>,
}

/// The fields of `login_cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginCancelParams {
    /// The login.
    pub login_id: String,
}

/// The answer to `login_cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginCancelled {
    /// Whether there was such a login.
    pub cancelled: bool,
}

/// A stored login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginState {
    /// In how many seconds its token ends, negative when it has; nothing when nobody knows, or it does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<i64>,
    /// Whether agentd can renew it by itself.
    pub renewable: bool,
}

/// The fields of `logout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogoutParams {
    /// The provider whose entry is taken out of `auth.json`.
    pub provider: String,
}

/// The answer to `logout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Logout {
    /// The provider.
    pub provider: String,
    /// The path of `auth.json`.
    pub file: String,
    /// The source of the provider's key now; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_from: Option<KeyOrigin>,
}

/// The fields of `get_auth_status`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuthStatusParams {
    /// Only this provider; default all for which something is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// The answer to `get_auth_status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    /// The path of `auth.json`, whether it is there or not.
    pub file: String,
    /// A problem of the whole file; nothing that is stored has effect then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_error: Option<String>,
    /// The providers, by name.
    pub providers: Vec<ProviderAuth>,
}

/// The source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderAuth {
    /// The provider.
    pub provider: String,
    /// The source in effect; absent when no key is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<KeyOrigin>,
    /// Whether there is a key that can be used, as far as can be told without asking the provider or running commands.
    pub usable: bool,
    /// Why there is none, or what is missing beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The login that is stored, when that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginState>,
    /// Other sources with a key, which have no effect because `source` takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<KeyOrigin>,
}

/// A place that a key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum KeyOrigin {
    /// The command line (`--api-key`).
    Flag,
    /// `auth.json`.
    Stored,
    /// `apiKey` in `models.json`.
    ModelsFile,
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
    },
}

fn write_secret<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// A text; what is no text is not quoted.
fn read_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    secret(Value::deserialize(deserializer)?)
}

pub(crate) fn write_optional_secret<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&secret.as_ref().map(Secret::expose))
}

pub(crate) fn read_optional_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value => secret(value).map(Some),
    }
}

fn write_secrets<S: Serializer>(
    secrets: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(secrets.iter().map(|(name, secret)| (name, secret.expose())))
}

fn read_secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| Ok((name, secret(value)?))).collect()
        }
        _ => Err(de::Error::custom("expected an object of strings")),
    }
}

fn secret<E: de::Error>(value: Value) -> Result<Secret, E> {
    match value {
        Value::String(text) => Ok(Secret::new(text)),
        _ => Err(E::custom("expected a string")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::command::{AdminCommand, Command};

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse("login", line).unwrap().map_err(|error| error.to_string())
    }

    #[test]
    fn keys_arrive_and_are_not_shown() {
        let line = r#"{"type":"login","provider":"p","key":"hush","env":{"A":"hush"},"force":true}"#;
        let command = parse(line).unwrap();
        assert!(!format!("{command:?}").contains("hush"), "{command:?}");
        let Command::Admin(AdminCommand::Login(params)) = command else { panic!("no login") };
        assert_eq!((params.key.expose(), params.env["A"].expose()), ("hush", "hush"));
        let written = serde_json::to_value(&params).unwrap();
        assert_eq!(written, json!({"provider": "p", "key": "hush", "env": {"A": "hush"}, "force": true}));
    }

    #[test]
    fn unusable_fields_are_named_and_not_quoted() {
        for (line, expected) in [
            (r#"{"type":"login","provider":"p"}"#, "Missing field \"key\""),
            (r#"{"type":"login","key":"hush"}"#, "Missing field \"provider\""),
            (r#"{"type":"login","provider":"p","key":["hush"]}"#, "Invalid field \"key\": expected a string"),
            (
                r#"{"type":"login","provider":"p","key":"k","env":"hush"}"#,
                "Invalid field \"env\": expected an object of strings",
            ),
            (
                r#"{"type":"login","provider":"p","key":"k","env":{"A":7}}"#,
                "Invalid field \"env\": expected a string",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err(), expected);
        }
    }
}
