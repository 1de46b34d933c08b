//! The sources of a session's credentials, and the state that they are kept in.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use agentd_config::{AgentDir, Environment, models::ModelRegistry};
use agentd_files::{QuickAccess, Stamp, stamp::now};
use agentd_http::HttpClients;
use agentd_protocol::models_file::ConfigValue;

use crate::{
    AuthError, AuthStore, AwsCache, CommandCache, LoginRenewer, Logins, Secret, StoreError,
    StoredCredentials, TokenCache,
    register_secrets::{register_configured_secrets, register_one, register_stored_secrets},
};

/// The services that all [`Auth`]s of a daemon share, for its life; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AuthServices {
    /// Outputs of commands that print keys.
    pub commands: CommandCache,
    /// The clients for token endpoints.
    pub http: Arc<HttpClients>,
    /// Tokens of clouds.
    pub tokens: TokenCache,
    /// Logins that are under way.
    pub logins: Logins,
    /// Keys of AWS that expire.
    pub aws: AwsCache,
}

/// The sources of a session's credentials.
#[derive(Debug, Clone)]
pub struct AuthSources {
    /// Holds `auth.json`, and is named in advice.
    pub agent_dir: AgentDir,
    /// The session's environment.
    pub environment: Environment,
    /// The models and their providers' keys and headers.
    pub registry: Arc<ModelRegistry>,
    /// The services that the daemon's sessions share.
    pub services: AuthServices,
}

/// The credentials of a session; cheap to clone. Sources in order: [`Auth::set_override`] (`--api-key`), `auth.json`,
/// `apiKey` in `models.json`, environment variables.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    sources: AuthSources,
    store: AuthStore,
    overrides: RwLock<HashMap<String, Secret>>,
    /// Renews logins that agentd cannot renew.
    login_renewer: Option<Arc<dyn LoginRenewer>>,
    /// The content of `auth.json` when it was last read.
    stored: RwLock<Arc<Snapshot>>,
    /// Looks at `auth.json`.
    access: QuickAccess,
}

/// `auth.json` at one moment; for a broken one nothing, and the reason.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) credentials: StoredCredentials,
    pub(crate) error: Option<String>,
    /// The file's state before it was read, if it could be used and a later change shows in it.
    stamp: Option<Stamp>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("agent_dir", &self.0.sources.agent_dir).finish_non_exhaustive()
    }
}

impl Auth {
    /// Reads `auth.json`. Blocks on the file system. A broken file fails no earlier than the requests it would serve.
    #[must_use]
    pub fn load(sources: AuthSources) -> Self {
        let store = AuthStore::at(sources.agent_dir.auth_file());
        let access = QuickAccess::new([sources.agent_dir.path().to_owned()]);
        let (overrides, stored) = (RwLock::default(), RwLock::default());
        let auth = Self(Arc::new(Inner { sources, store, overrides, login_renewer: None, stored, access }));
        auth.refresh();
        register_configured_secrets(&auth.key_variables(), auth.environment(), auth.registry());
        auth
    }

    /// The same credentials with other models: the keys of [`Auth::set_override`] and the content of `auth.json` stay.
    #[must_use]
    pub fn with_registry(&self, registry: Arc<ModelRegistry>) -> Self {
        let auth = Self(Arc::new(Inner {
            sources: AuthSources { registry, ..self.0.sources.clone() },
            ..self.0.copied()
        }));
        register_configured_secrets(&auth.key_variables(), auth.environment(), auth.registry());
        auth
    }

    /// The same credentials, where something else renews the logins with providers that only it knows.
    #[must_use]
    pub fn with_login_renewer(&self, login_renewer: Option<Arc<dyn LoginRenewer>>) -> Self {
        Self(Arc::new(Inner { login_renewer, ..self.0.copied() }))
    }

    pub(crate) fn login_renewer(&self) -> Option<&Arc<dyn LoginRenewer>> {
        self.0.login_renewer.as_ref()
    }

    /// Uses this key for a provider before all other sources, until the session ends (`--api-key`).
    pub fn set_override(&self, provider: impl Into<String>, key: Secret) {
        register_one(&key);
        self.0.overrides.write().unwrap_or_else(PoisonError::into_inner).insert(provider.into(), key);
    }

    /// Reads `auth.json` again for [`Auth::is_configured`] and [`Auth::status`], if it has changed. Blocks on the file system.
    pub fn refresh(&self) {
        // A fault is among what is remembered.
        let _ = self.0.read_changes();
    }

    /// The fault in `auth.json` when it was last read, for the user.
    #[must_use]
    pub fn load_error(&self) -> Option<String> {
        self.stored().error.clone()
    }

    /// The services that the daemon's sessions share.
    #[must_use]
    pub fn services(&self) -> &AuthServices {
        &self.0.sources.services
    }

    pub(crate) fn registry(&self) -> &ModelRegistry {
        &self.0.sources.registry
    }

    pub(crate) fn agent_dir(&self) -> &AgentDir {
        &self.0.sources.agent_dir
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.0.sources.environment
    }

    /// Looks at what `auth.json` said when it was last read.
    pub(crate) fn with_stored<T>(&self, look: impl FnOnce(&StoredCredentials) -> T) -> T {
        look(&self.stored().credentials)
    }

    pub(crate) fn stored(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.stored.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn override_of(&self, provider: &str) -> Option<Secret> {
        self.0.overrides.read().unwrap_or_else(PoisonError::into_inner).get(provider).cloned()
    }

    pub(crate) fn configured_key(&self, provider: &str) -> Option<&ConfigValue> {
        self.0.sources.registry.provider(provider)?.api_key.as_ref()
    }

    pub(crate) fn auth_file(&self) -> PathBuf {
        self.0.sources.agent_dir.auth_file()
    }

    pub(crate) fn store(&self) -> &AuthStore {
        &self.0.store
    }

    pub(crate) fn has_overrides(&self) -> bool {
        !self.0.overrides.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Reads `auth.json` anew where it has changed.
    pub(crate) async fn reread(&self) -> Result<Arc<Snapshot>, AuthError> {
        let me = Arc::clone(&self.0);
        Ok(match self.0.access.run(move || me.read_changes()).await {
            Ok(read) => read?,
            // Only when the runtime ends; no model will be asked then.
            Err(_) => self.0.read_changes()?,
        })
    }
}

impl Inner {
    /// Reads the file, unless it is as it was. Blocks.
    fn read_changes(&self) -> Result<Arc<Snapshot>, StoreError> {
        let taken = now();
        let stamp = Stamp::of(self.store.path());
        let stored = Arc::clone(&self.stored.read().unwrap_or_else(PoisonError::into_inner));
        if stamp.is_some() && stored.stamp == stamp {
            return Ok(stored);
        }
        let read = self.store.read();
        let error = read.as_ref().err().map(ToString::to_string);
        let stamp = stamp.filter(|stamp| error.is_none() && stamp.is_old(taken));
        let (credentials, failed) = match read {
            Ok(credentials) => (credentials, None),
            Err(failed) => (StoredCredentials::default(), Some(failed)),
        };
        register_stored_secrets(&credentials);
        let stored = Arc::new(Snapshot { credentials, error, stamp });
        *self.stored.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&stored);
        failed.map_or(Ok(stored), Err)
    }

    fn copied(&self) -> Self {
        let overrides = self.overrides.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stored = Arc::clone(&self.stored.read().unwrap_or_else(PoisonError::into_inner));
        Self {
            sources: self.sources.clone(),
            store: self.store.clone(),
            overrides: RwLock::new(overrides),
            login_renewer: self.login_renewer.clone(),
            stored: RwLock::new(stored),
            access: self.access.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn the_file_is_read_again_where_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let auth = Auth::load(AuthSources {
            agent_dir: AgentDir::at(folder.path()),
            environment: Environment::default(),
            registry: Arc::new(ModelRegistry::builtin()),
            services: AuthServices::default(),
        });
        let providers = async || {
            let read = auth.reread().await.map_err(|error| error.to_string())?;
            Ok::<_, String>(read.credentials.providers().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(providers().await, Ok(vec![]));
        let entry = |provider: &str| format!(r#"{{"{provider}": {{"type": "api_key", "key": "hush"}}}}"#);
        for provider in ["one", "two"] {
            fs::write(&file, entry(provider)).unwrap();
            assert_eq!(providers().await, Ok(vec![provider.to_owned()]));
        }
        // A file that has not changed for a while is not read again.
        while !Stamp::of(&file).is_some_and(|stamp| stamp.is_old(now())) {
            tokio::task::yield_now().await;
        }
        let read = auth.reread().await.unwrap();
        assert!(Arc::ptr_eq(&read, &auth.reread().await.unwrap()));
        auth.refresh();
        assert!(Arc::ptr_eq(&read, &auth.stored()));
        // Of the same length, and by the renaming that editors do.
        fs::write(folder.path().join("new"), entry("six")).unwrap();
        fs::rename(folder.path().join("new"), &file).unwrap();
        assert_eq!(providers().await, Ok(vec!["six".to_owned()]));
        fs::write(&file, "{").unwrap();
        assert!(providers().await.is_err() && auth.load_error().is_some());
        fs::remove_file(&file).unwrap();
        assert_eq!((providers().await, auth.load_error()), (Ok(vec![]), None));
    }
}
