//! `mcp-auth.json`: the tokens and clients of sign-ins, each bound to the authorization server that gave them.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agentd_auth::Secret;
use agentd_config::{AgentDir, FileLock, MemberChange, PrivateObject, PrivateObjectError, read_json};
use agentd_http::register_secret;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{error::OAuthError, token_auth::TokenAuthMethod};
use crate::names::namespace;

/// The time for another program that writes the file.
const EDIT_TIMEOUT: Duration = Duration::from_secs(15);

/// The time for another program that renews the same tokens. A lock ends with its process.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(25);

/// The time before its end at which a token is renewed.
const EARLY_MS: i64 = 30_000;

/// The client of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    /// How it authenticates, where its registration says so.
    pub(crate) auth_method: Option<TokenAuthMethod>,
    /// The address that the browser comes back to, of a client that agentd has registered.
    pub(crate) redirect_uri: Option<String>,
}

/// The tokens of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// The end of `access` in milliseconds since 1970; `None` when unknown.
    pub(crate) expires: Option<i64>,
    /// The scopes that were asked for, and those that were granted.
    pub(crate) scope: Option<String>,
}

impl Tokens {
    /// Whether the access token is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= now_ms().saturating_add(EARLY_MS))
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= now_ms())
    }
}

/// A sign-in as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredSignIn {
    /// The authorization server; tokens and client are good there alone.
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) token_auth_methods: Option<Vec<String>>,
    pub(crate) resource: String,
    pub(crate) resource_metadata: Option<String>,
    /// `None` for the client of the entry.
    pub(crate) client: Option<OAuthClient>,
    /// `None` after they were refused for good.
    pub(crate) tokens: Option<Tokens>,
    /// What a server has asked for beyond what was granted.
    pub(crate) wanted_scope: Option<String>,
}

/// The time as entries have it: milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl StoredSignIn {
    fn read(entry: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| {
            value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let secret = |value: &Value, name: &str| text(value, name).map(Secret::new);
        let client = text(&entry["client"], "id").map(|id| OAuthClient {
            id,
            secret: secret(&entry["client"], "secret"),
            auth_method: text(&entry["client"], "authMethod").as_deref().and_then(TokenAuthMethod::of),
            redirect_uri: text(&entry["client"], "redirectUri"),
        });
        let tokens = secret(&entry["tokens"], "access").map(|access| Tokens {
            access,
            refresh: secret(&entry["tokens"], "refresh"),
            expires: entry["tokens"]["expires"].as_i64(),
            scope: text(&entry["tokens"], "scope"),
        });
        let methods = entry["tokenAuthMethods"].as_array();
        Some(Self {
            issuer: text(entry, "issuer")?,
            token_endpoint: text(entry, "tokenEndpoint")?,
            token_auth_methods: methods
                .map(|methods| methods.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            resource: text(entry, "resource")?,
            resource_metadata: text(entry, "resourceMetadata"),
            client,
            tokens,
            wanted_scope: text(entry, "wantedScope"),
        })
    }

    fn to_json(&self) -> Value {
        let secret = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let client = self.client.as_ref().map(|client| {
            without_nulls(json!({"id": client.id, "secret": secret(&client.secret),
                "authMethod": client.auth_method.map(TokenAuthMethod::name), "redirectUri": client.redirect_uri}))
        });
        let tokens = self.tokens.as_ref().map(|tokens| {
            without_nulls(json!({"access": tokens.access.expose(), "refresh": secret(&tokens.refresh),
                "expires": tokens.expires, "scope": tokens.scope}))
        });
        without_nulls(json!({"issuer": self.issuer, "tokenEndpoint": self.token_endpoint,
            "tokenAuthMethods": self.token_auth_methods, "resource": self.resource,
            "resourceMetadata": self.resource_metadata, "client": client, "tokens": tokens,
            "wantedScope": self.wanted_scope}))
    }

    /// Takes all secrets out of what is shown from here on.
    fn register(&self) {
        let tokens = self.tokens.iter().flat_map(|tokens| [Some(&tokens.access), tokens.refresh.as_ref()]);
        let client = self.client.iter().map(|client| client.secret.as_ref());
        tokens.chain(client).flatten().for_each(|secret| register_secret(secret.expose()));
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        }
        value => value,
    }
}

/// The state of the file at a time; another one when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp(Option<(SystemTime, u64, u64)>);

/// The file. Every function blocks on the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignInStore {
    path: PathBuf,
    run_dir: PathBuf,
}

impl SignInStore {
    /// The file of an agent directory, whether it exists or not.
    pub(crate) fn of(agent_dir: &AgentDir) -> Self {
        Self { path: agent_dir.mcp_auth_file(), run_dir: agent_dir.run_dir() }
    }

    pub(crate) fn stamp(&self) -> FileStamp {
        use std::os::unix::fs::MetadataExt as _;
        let about = fs::metadata(&self.path).ok();
        FileStamp(about.and_then(|about| Some((about.modified().ok()?, about.len(), about.ino()))))
    }

    /// The sign-in of a server; one that cannot be read counts as none.
    ///
    /// # Errors
    /// The file cannot be read, or is no JSON.
    pub(crate) fn read(&self, key: &str) -> Result<Option<StoredSignIn>, OAuthError> {
        let document = read_json(&self.path).map_err(|error| OAuthError::Store(error.to_string()))?;
        let found = document.as_ref().and_then(|document| StoredSignIn::read(document.value.get(key)?));
        found.iter().for_each(StoredSignIn::register);
        Ok(found)
    }

    /// Changes the sign-in of a server: `change` sees it as it is now; `None` leaves it.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub(crate) fn update(
        &self,
        key: &str,
        change: impl FnOnce(Option<StoredSignIn>) -> Option<StoredSignIn>,
    ) -> Result<(), OAuthError> {
        self.edit(|entries| {
            let changed = change(entries.get(key).and_then(StoredSignIn::read));
            changed.iter().for_each(StoredSignIn::register);
            let set = changed.map(|changed| MemberChange::Set(vec![key.to_owned()], changed.to_json()));
            (set.into_iter().collect(), ())
        })
    }

    /// Removes every sign-in of the servers with this name; how many there were.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub(crate) fn remove_all(&self, name: &str) -> Result<usize, OAuthError> {
        // Without a file there is nothing to lock, and no folder to make for the lock.
        if !self.path.exists() {
            return Ok(0);
        }
        let start = format!("{}|", namespace(name));
        self.edit(|entries| {
            let found: Vec<MemberChange> = entries
                .keys()
                .filter(|key| key.starts_with(&start))
                .map(|key| MemberChange::Remove(key.clone()))
                .collect();
            let count = found.len();
            (found, count)
        })
    }

    fn edit<T>(
        &self,
        plan: impl FnOnce(&Map<String, Value>) -> (Vec<MemberChange>, T),
    ) -> Result<T, OAuthError> {
        let lock = self.run_dir.join("mcp-auth.lock");
        let object = PrivateObject { path: &self.path, lock: &lock, timeout: EDIT_TIMEOUT };
        let done = object.edit(|entries| Ok::<_, PrivateObjectError>(plan(entries)));
        done.map(|(_, passed_on)| passed_on).map_err(|error| OAuthError::Store(error.to_string()))
    }

    /// The lock of those who renew the tokens of one server, in all processes. Servers do not wait for each other.
    ///
    /// # Errors
    /// Another process has it for too long, or the file system fails.
    pub(crate) fn lock_for_renewal(&self, key: &str) -> Result<FileLock, OAuthError> {
        let digest: String =
            Sha256::digest(key.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = self.run_dir.join(format!("mcp-auth-{digest}.lock"));
        FileLock::take(&path, RENEWAL_TIMEOUT)
            .map_err(|error| OAuthError::Store(format!("{} cannot be locked: {error}", path.display())))
    }
}

/// The key of a server's entry.
pub(crate) fn key_of(name: &str, url: &str) -> String {
    format!("{}|{url}", namespace(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn sign_in(access: &str) -> StoredSignIn {
        StoredSignIn {
            issuer: "https://a.example".into(),
            token_endpoint: "https://a.example/token".into(),
            token_auth_methods: Some(vec!["none".into()]),
            resource: "https://s.example/mcp".into(),
            resource_metadata: None,
            client: Some(OAuthClient {
                id: "c".into(),
                secret: Some(Secret::new("hush-secret-1")),
                auth_method: Some(TokenAuthMethod::Post),
                redirect_uri: Some("http://127.0.0.1:1/callback".into()),
            }),
            tokens: Some(Tokens {
                access: Secret::new(access),
                refresh: Some(Secret::new("hush-refresh-1")),
                expires: Some(1),
                scope: Some("a".into()),
            }),
            wanted_scope: Some("a b".into()),
        }
    }

    #[test]
    fn sign_ins_come_back_as_they_were_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = SignInStore::of(&AgentDir::at(folder.path()));
        let (one, other) = (key_of("a-b", "https://s.example/mcp"), key_of("a-b", "https://t.example/mcp"));
        assert_eq!(one, "mcp__a_b|https://s.example/mcp");
        assert_eq!(store.read(&one).unwrap(), None);
        let empty = store.stamp();
        for key in [&one, &other, &key_of("a-bc", "u")] {
            store.update(key, |before| before.is_none().then(|| sign_in("hush-access-1"))).unwrap();
        }
        assert_ne!(store.stamp(), empty);
        assert_eq!(store.read(&one).unwrap(), Some(sign_in("hush-access-1")));
        let mode = fs::metadata(&store.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{:?}", sign_in("hush-access-1")).contains("hush"));

        store.update(&one, |before| Some(StoredSignIn { tokens: None, ..before.unwrap() })).unwrap();
        let changed = store.read(&one).unwrap().unwrap();
        assert_eq!((changed.tokens, changed.client), (None, sign_in("").client));
        assert_eq!((store.remove_all("a_b").unwrap(), store.remove_all("a-b").unwrap()), (2, 0));
        assert!(store.read(&key_of("a-bc", "u")).unwrap().is_some());
    }

    #[test]
    fn what_cannot_be_read_counts_as_none_and_a_broken_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = SignInStore::of(&AgentDir::at(folder.path()));
        fs::write(&store.path, r#"{"k": {"issuer": 7}, "l": "hush"}"#).unwrap();
        assert_eq!((store.read("k").unwrap(), store.read("l").unwrap()), (None, None));
        fs::write(&store.path, "{hush").unwrap();
        let error = store.read("k").unwrap_err().to_string();
        assert!(error.contains("mcp-auth.json") && !error.contains("hush"), "{error}");
        assert!(store.update("k", |_| Some(sign_in("x"))).is_err());
        assert_eq!(fs::read_to_string(&store.path).unwrap(), "{hush");
    }

    #[test]
    fn one_at_a_time_renews_the_tokens_of_a_server() {
        let folder = tempfile::tempdir().unwrap();
        let store = SignInStore::of(&AgentDir::at(folder.path()));
        let held = store.lock_for_renewal("k").unwrap();
        let _other = store.lock_for_renewal("l").unwrap();
        let waiting = std::thread::spawn(move || drop(store.lock_for_renewal("k").unwrap()));
        assert!(!waiting.is_finished());
        drop(held);
        waiting.join().unwrap();
    }

    #[test]
    fn a_token_ends_a_little_early() {
        let tokens = |expires| Tokens { expires, ..sign_in("x").tokens.unwrap() };
        let now = now_ms();
        assert!(!tokens(None).is_ending() && !tokens(Some(now + 60_000)).is_ending());
        assert!(tokens(Some(now + 10_000)).is_ending() && !tokens(Some(now + 10_000)).is_over());
        assert!(tokens(Some(now - 1)).is_over());
    }
}
