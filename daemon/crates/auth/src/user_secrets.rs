//! The user's secrets, as far as files and variables show them. Nothing is run and no server is asked.

use std::path::Path;

use agentd_config::{Environment, JsonFileError, MAX_FILE_BYTES, read_json};
use agentd_http::{NamedProxy, Network, Redactor};
use agentd_safe_open::{LinkPolicy, OpenRules};
use reqwest::Url;
use serde_json::Value;

use crate::Secret;

/// The shortest text that counts as a key; removing shorter ones would only garble texts.
const MIN_BYTES: usize = 8;

/// The shortest text that counts as a secret in a file that is not valid JSON.
const MIN_BROKEN_BYTES: usize = 12;

/// The depth of JSON inside of JSON strings in which secrets are found.
const DEPTH: usize = 4;

/// The text in place of a value that is hidden for its name.
const REDACTED: &str = "[redacted]";

/// Takes the user's secrets out of texts that are to leave the machine. `Debug` shows none of them.
#[derive(Debug, Clone, Default)]
pub struct UserSecrets {
    redactor: Redactor,
}

impl UserSecrets {
    /// Gathers the secrets of the credentials file, of these settings and models files, and of variables with secret names.
    /// Blocks on the file system.
    #[must_use]
    pub fn gather(auth_file: &Path, settings: &[&Path], environment: &Environment) -> Self {
        let mut found = Found { environment, secrets: Vec::new(), names: Vec::new() };
        match read_json(auth_file) {
            Ok(document) => {
                document.iter().for_each(|document| found.stored(&document.value));
            }
            Err(error) => found.broken(auth_file, &error),
        }
        for path in settings {
            match read_json(path) {
                Ok(document) => document.iter().for_each(|document| {
                    found.providers(&document.value);
                    found.configured(&document.value, false);
                }),
                Err(error) => found.broken(path, &error),
            }
        }
        found.variables();
        let Found { mut secrets, names, .. } = found;
        secrets.retain(|secret| secret.len() >= MIN_BYTES && !names.contains(secret));
        secrets.sort_unstable();
        secrets.dedup();
        Self { redactor: Redactor::default().and_nested(secrets.into_iter().map(Secret::new), DEPTH) }
    }

    /// Takes these out, too.
    #[must_use]
    pub fn and(self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        let long_enough = secrets.into_iter().filter(|secret| secret.expose().len() >= MIN_BYTES);
        Self { redactor: self.redactor.and_nested(long_enough, DEPTH) }
    }

    /// The text without secrets. JSON stays JSON.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let redacted = self.redactor.redact(text.to_owned());
        if redacted == text || serde_json::from_str::<serde::de::IgnoredAny>(&redacted).is_ok() {
            return redacted;
        }
        // A secret of digits may also be a part of a number, which is none.
        match serde_json::from_str::<Value>(text) {
            Ok(mut json) => {
                self.strings(&mut json);
                json.to_string()
            }
            Err(_) => redacted,
        }
    }

    fn strings(&self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.redactor.redact(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strings(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.strings(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Settings or models without secrets, and without what members hold whose names speak of secrets.
    #[must_use]
    pub fn settings(&self, settings: &Value) -> Value {
        let mut shown = settings.clone();
        hide(&mut shown, false);
        self.strings(&mut shown);
        shown
    }
}

/// Takes out all texts below members whose names speak of secrets.
fn hide(value: &mut Value, is_secret: bool) {
    match value {
        Value::String(text) if is_secret => REDACTED.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, is_secret)),
        Value::Object(members) => {
            for (name, value) in members {
                hide(value, is_secret || speaks_of_secrets(name));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn speaks_of_secrets(name: &str) -> bool {
    name.eq_ignore_ascii_case("headers") || Redactor::hides(name)
}

/// The secrets found so far.
struct Found<'a> {
    environment: &'a Environment,
    secrets: Vec<String>,
    /// The ids of providers and models: a key that is one of them, as local servers are given, is none.
    names: Vec<String>,
}

impl Found<'_> {
    fn add(&mut self, text: &str) {
        let text = text.trim();
        for scheme in ["Bearer ", "bearer ", "Basic ", "basic "] {
            self.secrets.extend(text.strip_prefix(scheme).map(|token| token.trim().to_owned()));
        }
        self.secrets.push(text.to_owned());
        // The value of a named variable is a secret, too.
        for part in text.split('$').skip(1) {
            let name = part.trim_start_matches('{');
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
            self.secrets.extend(self.environment.get(&name[..end]).map(str::to_owned));
        }
    }

    /// Adds the credentials file: all of it but the types of the entries.
    fn stored(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.stored(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    match name.as_str() {
                        "type" => {}
                        "env" => self.configured(value, false),
                        _ => self.stored(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds the secrets of settings and models: values of members with secret names, and secret parts of addresses.
    fn configured(&mut self, value: &Value, is_secret: bool) {
        match value {
            Value::String(text) if is_secret => self.add(text),
            Value::String(text) => self.address(text),
            Value::Array(items) => items.iter().for_each(|item| self.configured(item, is_secret)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.configured(value, is_secret || speaks_of_secrets(name));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn address(&mut self, text: &str) {
        if !text.contains('@') && !text.contains('?') {
            return;
        }
        let network = Network::default().or_proxy(Some(NamedProxy::new(text, "")));
        self.secrets.extend(network.secrets().iter().map(|secret| secret.expose().to_owned()));
        if let Ok(url) = Url::parse(text) {
            self.secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
        }
    }

    /// The names in a file of models.
    fn providers(&mut self, value: &Value) {
        for (name, provider) in value.get("providers").and_then(Value::as_object).into_iter().flatten() {
            self.names.push(name.clone());
            let models = provider.get("models").and_then(Value::as_array).into_iter().flatten();
            self.names.extend(models.filter_map(|model| model.get("id")?.as_str().map(str::to_owned)));
        }
    }

    fn variables(&mut self) {
        let variables: Vec<(String, String)> = self
            .environment
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect();
        for (name, value) in variables {
            if !Redactor::hides(&name) {
                self.address(&value);
            } else if !Path::new(&value).exists() {
                self.secrets.push(value.trim().to_owned());
            }
        }
    }

    /// A file that is no JSON: what could be a key in it.
    fn broken(&mut self, path: &Path, error: &JsonFileError) {
        if matches!(error, JsonFileError::Unreadable(_)) {
            return;
        }
        let rules = OpenRules::new(LinkPolicy::Followed).max_bytes(MAX_FILE_BYTES);
        let Ok(Some(bytes)) = rules.read(path) else { return };
        let text = String::from_utf8_lossy(&bytes);
        let words = text.split(|c: char| c.is_whitespace() || "\"'`,:{}[]".contains(c));
        let could_be =
            |word: &&str| word.len() >= MIN_BROKEN_BYTES && word.contains(|c: char| c.is_ascii_digit());
        self.secrets.extend(words.filter(could_be).map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        fn known(&self, auth: &str, models: &str, variables: &[(&str, &str)]) -> UserSecrets {
            let write = |name: &str, text: &str| {
                let path = self.0.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            };
            let (auth, models) = (write("auth.json", auth), write("models.json", models));
            UserSecrets::gather(&auth, &[&models], &variables.iter().copied().collect())
        }
    }

    #[test]
    fn secrets_of_every_place_are_taken_out_and_nothing_else() {
        let files = Files(tempfile::tempdir().unwrap());
        let auth = json!({"a": {"type": "api_key", "key": "stored-key-1", "env": {"REGION": "region-one", "X_KEY": "env-key-99"}},
            "b": {"type": "oauth", "access": "access-token-2", "expires": 1_700_000_000_000_u64}});
        let models = json!({"providers": {"ollama-server": {"apiKey": "ollama-server", "baseUrl": "http://u:userinfo-5@h/v1?q=query-value",
            "headers": {"x": "Bearer header-value-3", "y": "$NAMED"},
            "models": [{"id": "model-name", "maxTokens": 4096, "name": "the-name-1"}]}}});
        let variables = [
            ("OPENAI_API_KEY", "environment-4"),
            ("NAMED", "named-value-7"),
            ("HTTPS_PROXY", "http://me:proxy-pass@proxy"),
            ("SSH_AUTH_SOCK", "/"),
            ("HOME", "/home/somebody"),
            ("NUMBER_TOKEN", "1234567890"),
        ];
        let known = files.known(&auth.to_string(), &models.to_string(), &variables);
        for secret in [
            "stored-key-1",
            "env-key-99",
            "access-token-2",
            "userinfo-5",
            "query-value",
            "header-value-3",
            "environment-4",
            "named-value-7",
            "proxy-pass",
        ] {
            let text = json!({"line": json!({"t": format!("is {secret}!")}).to_string()}).to_string();
            let redacted = known.redact(&text);
            assert!(!redacted.contains(secret) && redacted.contains("[redacted]!"), "{secret}: {redacted}");
        }
        for harmless in
            ["ollama-server", "model-name", "the-name-1", "region-one", "/home/somebody", "api_key", "h/v1"]
        {
            assert_eq!(known.redact(harmless), harmless);
        }
        assert_eq!(
            known.redact(r#"{"n":1234567890,"s":"1234567890"}"#),
            r#"{"n":1234567890,"s":"[redacted]"}"#
        );
        let shown = known.settings(&models)["providers"]["ollama-server"].clone();
        assert_eq!((&shown["apiKey"], &shown["headers"]["y"]), (&json!("[redacted]"), &json!("[redacted]")));
        assert_eq!(
            (&shown["models"][0]["maxTokens"], &shown["models"][0]["id"]),
            (&json!(4096), &json!("model-name"))
        );
        assert!(
            !shown.to_string().contains("userinfo-5") && !format!("{known:?}").contains("stored"),
            "{shown}"
        );
    }

    #[test]
    fn a_broken_file_gives_its_keys_as_well() {
        let files = Files(tempfile::tempdir().unwrap());
        let known = files.known(r#"{"a": {"key": "sk-broken-0123456789"#, "", &[]);
        assert_eq!(known.redact("sk-broken-0123456789 and key"), "[redacted] and key");
    }
}
