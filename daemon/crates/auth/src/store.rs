//! `auth.json`: stored credentials.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use agentd_config::{JsonFileError, PrivateObjectError, read_json};
use agentd_protocol::models_file::ConfigValue;
use serde_json::{Map, Value};

use crate::oauth::StoredLogin;

/// The file.
#[derive(Debug, Clone)]
pub struct AuthStore {
    path: PathBuf,
}

/// The entries of `auth.json`.
#[derive(Debug, Clone, Default)]
pub struct StoredCredentials(BTreeMap<String, StoredEntry>);

/// An entry of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredEntry {
    /// A key.
    ApiKey {
        /// The key: a literal, a variable or a command.
        key: Option<ConfigValue>,
        /// Variables that belong to the credential and come before those of the environment.
        env: Vec<(String, ConfigValue)>,
    },
    /// The tokens of a login.
    OAuth(Box<StoredLogin>),
    /// Something that cannot be used, and why.
    Unusable(String),
}

/// The longest key that is stored. Real ones have up to a few thousand characters.
pub(crate) const MAX_KEY_BYTES: usize = 16 * 1024;

/// Why a key cannot be stored. No message quotes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// There is nothing in it.
    #[error("the key is empty")]
    Empty,
    /// It cannot be sent in a header.
    #[error(
        "the key has a blank, a line break or a character beyond ASCII in it, which no key has (was more copied than \
         the key?)"
    )]
    NoKey,
    /// It is too long.
    #[error("the key is longer than {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// The name of a variable cannot be one.
    #[error("\"{0}\" cannot be the name of a variable: letters, digits and _ only, and no digit first")]
    Name(String),
    /// A variable's value is empty or holds a line break.
    #[error("the value of {0} is empty or has a line break in it")]
    Value(String),
    /// The provider's name cannot be one.
    #[error("\"{0}\" cannot be the name of a provider")]
    Provider(String),
}

/// Why the file cannot be used. It is never overwritten.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read or is not JSON.
    #[error("stored credentials cannot be used: {0}. Repair the file or remove it.")]
    File(#[from] JsonFileError),
    /// It holds no object.
    #[error("stored credentials cannot be used: {} holds no JSON object. Repair the file or remove it.", path.display())]
    NotAnObject {
        /// The path.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("the stored credentials were not changed: {0}")]
    NotChanged(#[source] PrivateObjectError),
    /// The new entry can be no key.
    #[error("Nothing was stored: {0}.")]
    Key(#[source] KeyProblem),
    /// The provider has an entry that a key would destroy.
    #[error("Nothing was stored: {} holds {what} for {provider}, which another program may use.", path.display())]
    Occupied {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
        /// The kind of file.
        what: &'static str,
    },
}

impl AuthStore {
    /// The file at this path, whether it exists or not.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file; a missing one holds nothing. Blocks on the file system.
    ///
    /// # Errors
    /// [`StoreError`]; the message names the file.
    pub fn read(&self) -> Result<StoredCredentials, StoreError> {
        let Some(document) = read_json(&self.path)? else { return Ok(StoredCredentials::default()) };
        let Value::Object(entries) = document.value else {
            return Err(StoreError::NotAnObject { path: self.path.clone() });
        };
        Ok(StoredCredentials(
            entries.into_iter().map(|(provider, entry)| (provider, stored(entry))).collect(),
        ))
    }
}

impl StoredCredentials {
    /// The providers with an entry, by name.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All that is stored, by provider.
    pub(crate) fn values(&self) -> impl Iterator<Item = &StoredEntry> {
        self.0.values()
    }

    /// The entry of a provider.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<&StoredEntry> {
        self.0.get(provider)
    }
}

/// One entry. A bad one costs only its own provider.
pub(crate) fn stored(entry: Value) -> StoredEntry {
    let unusable = |what: &str| StoredEntry::Unusable(what.to_owned());
    let Value::Object(mut entry) = entry else { return unusable("it is no object") };
    match entry.get("type").and_then(Value::as_str) {
        Some("api_key") => {}
        Some("oauth") => {
            return StoredLogin::read(&entry)
                .map_or_else(StoredEntry::Unusable, |login| StoredEntry::OAuth(Box::new(login)));
        }
        _ => return unusable("its \"type\" is neither \"api_key\" nor \"oauth\""),
    }
    let key = match entry.remove("key") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(ConfigValue::new(key)),
        Some(_) => return unusable("its \"key\" is no string"),
    };
    match entry.remove("env") {
        None | Some(Value::Null) => StoredEntry::ApiKey { key, env: Vec::new() },
        Some(Value::Object(env)) => variables(env).map_or_else(
            || unusable("its \"env\" holds something that is no string"),
            |env| StoredEntry::ApiKey { key, env },
        ),
        Some(_) => unusable("its \"env\" is no object"),
    }
}

fn variables(env: Map<String, Value>) -> Option<Vec<(String, ConfigValue)>> {
    env.into_iter().map(|(name, value)| Some((name, ConfigValue::new(value.as_str()?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn read(text: &str) -> Result<StoredCredentials, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        std::fs::write(&path, text).unwrap();
        let read = AuthStore::at(&path).read();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        read.map_err(|error| error.to_string())
    }

    fn check(entry: &str, expected: StoredEntry) {
        let stored = read(&format!("\u{FEFF}{{ // mine\n \"p\": {entry}, }}")).unwrap();
        assert_eq!(stored.get("p"), Some(&expected), "{entry}");
        assert!(!format!("{stored:?}").contains("hush"), "{stored:?}");
    }

    #[test]
    fn entries() {
        let key = Some(ConfigValue::new("hush"));
        check(
            r#"{"type":"api_key","key":"hush"}"#,
            StoredEntry::ApiKey { key: key.clone(), env: Vec::new() },
        );
        let env = vec![("A".to_owned(), ConfigValue::new("hush"))];
        check(
            r#"{"type":"api_key","key":"hush","env":{"A":"hush"},"x":1}"#,
            StoredEntry::ApiKey { key, env },
        );
        check(r#"{"type":"api_key"}"#, StoredEntry::ApiKey { key: None, env: Vec::new() });
        let login = StoredLogin {
            access: Some(Secret::new("hush")),
            refresh: Some(Secret::new("hush")),
            expires: Some(1),
            ..StoredLogin::default()
        };
        let stored = StoredEntry::OAuth(Box::new(login));
        check(r#"{"type":"oauth","access":"hush","refresh":"hush","expires":1}"#, stored);
        let empty = StoredEntry::Unusable("it has neither \"access\" nor \"refresh\"".into());
        check(r#"{"type":"oauth"}"#, empty);
        let unusable = |entry: &str, what: &str| check(entry, StoredEntry::Unusable(what.into()));
        unusable(r#""hush""#, "it is no object");
        unusable(r#"{"type":"hush"}"#, "its \"type\" is neither \"api_key\" nor \"oauth\"");
        unusable(r#"{"type":"api_key","key":["hush"]}"#, "its \"key\" is no string");
        unusable(r#"{"type":"api_key","env":"hush"}"#, "its \"env\" is no object");
        unusable(
            r#"{"type":"api_key","env":{"A":["hush"]}}"#,
            "its \"env\" holds something that is no string",
        );
    }

    #[test]
    fn broken_files_are_named_and_not_quoted() {
        for (text, expected) in [
            ("{\"p\": hush}", "auth.json, line 1, column 7: expected value. Repair the file or remove it."),
            ("[\"hush\"]", "auth.json holds no JSON object. Repair the file or remove it."),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.ends_with(expected) && !error.contains("hush"), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(AuthStore::at(folder.path()).read().is_err());
        assert!(AuthStore::at(folder.path().join("none")).read().unwrap().get("p").is_none());
    }
}
