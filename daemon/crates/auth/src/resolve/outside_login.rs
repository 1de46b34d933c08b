//! The key of a stored login that agentd itself cannot renew.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::{runtime::Handle, task::spawn_blocking};

use super::RefusedCredentials;
use crate::{
    Auth, AuthError, FinishedLogin, LoginError, LoginRenewer, RenewError, Secret, StoreError,
    oauth::{StoredLogin, now_ms},
    provider_keys::ProviderKey,
};

const GONE: RenewError = RenewError::NoWay("it is gone from the file, or is a login no more");

/// Only when the runtime ends; no model will be asked then.
const ENDING: RenewError = RenewError::NoWay("agentd is ending");

impl Auth {
    /// Whether a login may be stored for a provider: unless a key is there, which only `force` replaces.
    ///
    /// # Errors
    /// [`StoreError`]. Cancel safe.
    pub async fn has_place_for_login(&self, provider: &str, force: bool) -> Result<(), StoreError> {
        let (store, name) = (self.store().clone(), provider.to_owned());
        // It fails only when the runtime ends.
        spawn_blocking(move || store.check_free(&name, force)).await.unwrap_or(Ok(()))
    }

    /// Stores what something else than agentd has got by a login; `force` replaces a key, too. From then on its tokens are known as
    /// secrets.
    ///
    /// # Errors
    /// [`LoginError`]: it is no login that can be used, or could not be stored. Then the file is unchanged.
    ///
    /// Cancel safety: dropped early, it is stored or not.
    pub async fn store_login(
        &self,
        provider: &str,
        login: Map<String, Value>,
        force: bool,
    ) -> Result<FinishedLogin, LoginError> {
        let entry = checked(login).map_err(|problem| {
            LoginError::Outside(format!("what the login gave cannot be used: {problem}"))
        })?;
        let (store, name) = (self.store().clone(), provider.to_owned());
        let stored = spawn_blocking(move || store.set_login(&name, entry, force)).await;
        let replaced = stored
            .map_err(|_| LoginError::Cancelled)?
            .map_err(|error| LoginError::NotStored(error.to_string()))?;
        self.reread().await.map_err(|error| LoginError::NotStored(error.to_string()))?;
        Ok(FinishedLogin { provider: provider.to_owned(), replaced, models: None })
    }

    /// The whole entry of a stored login; nothing where there is none, or where the file cannot be read.
    pub async fn whole_login(&self, provider: &str) -> Option<Map<String, Value>> {
        let (store, name) = (self.store().clone(), provider.to_owned());
        spawn_blocking(move || store.login_entry(&name)).await.ok()?.ok()?
    }

    /// What renews the logins with a provider, where agentd does not.
    pub(super) fn renewer_of(&self, provider: &str) -> Option<Arc<dyn LoginRenewer>> {
        self.login_renewer().filter(|renewer| renewer.renews(provider)).cloned()
    }

    /// The key of a login, which is renewed where its token has ended or the key was refused.
    pub(super) async fn outside_key(
        &self,
        provider: &str,
        renewer: Arc<dyn LoginRenewer>,
        refused: RefusedCredentials<'_>,
    ) -> Result<ProviderKey, AuthError> {
        let failed = |problem| self.login_ended(provider, problem);
        let (store, name) = (self.store().clone(), provider.to_owned());
        let read = spawn_blocking(move || store.login_entry(&name)).await.map_err(|_| failed(ENDING))?;
        let entry = read?.ok_or_else(|| failed(GONE))?;
        let mut refused_token = None;
        if let Some(token) = living(&entry, None) {
            let key = key_of(&*renewer, provider, &entry).await.map_err(failed)?;
            if !refused.holds(&key) {
                return Ok(ProviderKey::ApiKey(key));
            }
            refused_token = Some(token);
        }
        let entry = self.renew_outside(provider, &renewer, refused_token).await?;
        key_of(&*renewer, provider, &entry).await.map(ProviderKey::ApiKey).map_err(failed)
    }

    /// Renews a login while no other process works on it. It continues when the caller is gone: a token that was given is always stored.
    async fn renew_outside(
        &self,
        provider: &str,
        renewer: &Arc<dyn LoginRenewer>,
        refused: Option<Secret>,
    ) -> Result<Map<String, Value>, AuthError> {
        let (store, name, renewer) = (self.store().clone(), provider.to_owned(), Arc::clone(renewer));
        let runtime = Handle::current();
        let renewing = spawn_blocking(move || {
            store.renew_entry(&name, |stored| {
                let Some(entry) = stored else { return (None, Err(GONE)) };
                // Another program, or another task, may have renewed it while this one waited.
                if living(&entry, refused.as_ref()).is_some() {
                    return (None, Ok(entry));
                }
                let renewed = runtime.block_on(renewer.renew(&name, &entry)).and_then(usable);
                match renewed {
                    Ok(renewed) => (Some(renewed.clone()), Ok(renewed)),
                    Err(problem) => (None, Err(RenewError::Outside(problem))),
                }
            })
        });
        let renewed: Result<Result<_, RenewError>, StoreError> =
            renewing.await.unwrap_or_else(|_| Ok(Err(ENDING)));
        let renewed = renewed?.map_err(|problem| self.login_ended(provider, problem))?;
        // So that its tokens are known as secrets.
        self.reread().await?;
        Ok(renewed)
    }
}

/// The token of an entry, if it has not ended and is not the one that was refused.
fn living(entry: &Map<String, Value>, refused: Option<&Secret>) -> Option<Secret> {
    let login = StoredLogin::read(entry).ok()?;
    login.living(now_ms(), |access| refused == Some(access)).cloned()
}

/// A renewed login as it is stored.
fn usable(renewed: Map<String, Value>) -> Result<Map<String, Value>, String> {
    checked(renewed).map_err(|problem| format!("what it was renewed to cannot be used: {problem}"))
}

/// A login of something else as it is stored.
fn checked(mut login: Map<String, Value>) -> Result<Map<String, Value>, String> {
    login.insert("type".to_owned(), "oauth".into());
    StoredLogin::read(&login).map(|_| login)
}

async fn key_of(
    renewer: &dyn LoginRenewer,
    provider: &str,
    entry: &Map<String, Value>,
) -> Result<Secret, RenewError> {
    match renewer.key(provider, entry).await {
        Ok(key) if key.is_empty() => Err(RenewError::Outside("its key is empty".to_owned())),
        Ok(key) => Ok(Secret::new(key)),
        Err(problem) => Err(RenewError::Outside(problem)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use agentd_config::{AgentDir, models::ModelRegistry};
    use agentd_http::Credentials;
    use agentd_protocol::model::Model;
    use serde_json::json;

    use super::*;
    use crate::{AuthServices, AuthSources, LoginStep};

    /// Renews the logins of `p`: counts on from the refresh token.
    #[derive(Default)]
    struct Renewer {
        renewed: AtomicUsize,
        fails: Mutex<Option<Result<Value, String>>>,
    }

    impl LoginRenewer for Renewer {
        fn renews(&self, provider: &str) -> bool {
            provider == "p"
        }

        fn renew<'a>(
            &'a self,
            _: &'a str,
            login: &'a Map<String, Value>,
        ) -> LoginStep<'a, Map<String, Value>> {
            Box::pin(async move {
                let number = self.renewed.fetch_add(1, Ordering::Relaxed);
                if let Some(other) = self.fails.lock().unwrap().take() {
                    return other.map(|other| other.as_object().cloned().unwrap());
                }
                let mut login = login.clone();
                login.extend(
                    json!({"access": format!("access-{number}"), "expires": 4_102_444_800_000_i64, "team": {"id": 7}})
                        .as_object()
                        .cloned()
                        .unwrap(),
                );
                login.remove("type");
                Ok(login)
            })
        }

        fn key<'a>(&'a self, _: &'a str, login: &'a Map<String, Value>) -> LoginStep<'a, String> {
            Box::pin(async move { Ok(format!("key of {}", login["access"].as_str().unwrap())) })
        }
    }

    struct Place {
        folder: tempfile::TempDir,
        renewer: Arc<Renewer>,
        auth: Auth,
        model: Arc<Model>,
    }

    fn place(entry: &Value) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let models = json!({"providers": {"p": {"baseUrl": "https://h", "api": "anthropic-messages", "models": [{"id": "m"}]}}});
        fs::write(folder.path().join("models.json"), models.to_string()).unwrap();
        fs::write(folder.path().join("auth.json"), json!({"p": entry}).to_string()).unwrap();
        let agent_dir = AgentDir::at(folder.path());
        let registry = Arc::new(ModelRegistry::load(&agent_dir.models_file()));
        let model = registry.find("p", "m").unwrap();
        let (environment, services) = (std::iter::empty::<(&str, &str)>().collect(), AuthServices::default());
        let renewer = Arc::new(Renewer::default());
        let auth = Auth::load(AuthSources { agent_dir, environment, registry, services })
            .with_login_renewer(Some(Arc::clone(&renewer) as _));
        Place { folder, renewer, auth, model: Arc::new((*model).clone()) }
    }

    impl Place {
        fn stored(&self) -> Value {
            let text = fs::read_to_string(self.folder.path().join("auth.json")).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["p"].clone()
        }

        async fn key(&self) -> Result<String, String> {
            let found = self.auth.credentials(&self.model).await.map_err(|error| error.to_string())?;
            Ok(found.credentials.api_key.unwrap().expose().to_owned())
        }

        fn renewed(&self) -> usize {
            self.renewer.renewed.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_ended_login_is_renewed_and_stored_whole() {
        let place =
            place(&json!({"type": "oauth", "access": "old", "refresh": "r", "expires": 1, "mine": [1]}));
        assert!(place.auth.is_configured("p"));
        assert_eq!(place.key().await.unwrap(), "key of access-0");
        let expected = json!({
            "type": "oauth", "access": "access-0", "refresh": "r", "expires": 4_102_444_800_000_i64, "mine": [1],
            "team": {"id": 7},
        });
        assert_eq!(place.stored(), expected);
        assert_eq!(place.key().await.unwrap(), "key of access-0");
        assert_eq!(place.renewed(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_a_login_gave_is_stored_whole_and_used() {
        let place = place(&json!({"type": "api_key", "key": "sk"}));
        let Value::Object(login) =
            json!({"access": "a", "refresh": "r", "expires": 4_102_444_800_000_i64, "team": {"id": 7}})
        else {
            panic!()
        };
        place.auth.has_place_for_login("p", true).await.unwrap();
        assert!(place.auth.has_place_for_login("p", false).await.is_err());
        assert!(matches!(
            place.auth.store_login("p", login.clone(), false).await,
            Err(LoginError::NotStored(_))
        ));
        let nothing = place.auth.store_login("p", Map::new(), true).await.unwrap_err().to_string();
        assert!(nothing.contains("what the login gave cannot be used"), "{nothing}");
        assert_eq!(place.stored(), json!({"type": "api_key", "key": "sk"}));
        assert!(place.auth.store_login("p", login.clone(), true).await.unwrap().replaced);
        let mut expected = Value::Object(login);
        expected["type"] = "oauth".into();
        assert_eq!(place.stored(), expected);
        assert_eq!(place.auth.whole_login("p").await.map(Value::Object), Some(expected));
        assert_eq!(place.key().await.unwrap(), "key of a");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_refused_key_is_renewed_once() {
        let place =
            place(&json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 4_102_444_800_000_i64}));
        assert_eq!(place.key().await.unwrap(), "key of a");
        let refused = Credentials { api_key: Some(Secret::new("key of a")), ..Credentials::default() };
        let renewed = place.auth.renew(&place.model, &refused).await.unwrap().unwrap();
        assert_eq!(renewed.credentials.api_key, Some(Secret::new("key of access-0")));
        assert!(place.auth.renew(&place.model, &refused).await.is_some(), "the file has another one by now");
        assert_eq!(place.renewed(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failure_leaves_the_file_alone() {
        let entry = json!({"type": "oauth", "access": "old", "refresh": "r", "expires": 1});
        for (other, words) in [
            (Err("the server said no".to_owned()), "the server said no"),
            (Ok(json!({"expires": 1})), "neither"),
        ] {
            let place = place(&entry);
            *place.renewer.fails.lock().unwrap() = Some(other);
            let error = place.key().await.unwrap_err();
            assert!(error.contains(words) && error.contains("agentctl login p --force"), "{error}");
            assert_eq!(place.stored(), entry);
        }
    }
}
