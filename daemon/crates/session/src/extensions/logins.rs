//! Logins with providers of extensions: how the keys of a session are found, and which models they give.

use std::sync::Arc;

use agentd_auth::{Auth, LoginRenewer, LoginStep};
use agentd_config::models::ModelRegistry;
use agentd_extensions::{ExtensionLogins, SessionExtensions};
use serde_json::{Map, Value};

use crate::models::unmodified_models;

struct LoginsOfExtensions(ExtensionLogins);

/// What renews the logins with the providers of these extensions.
pub(crate) fn login_renewer(extensions: Option<&SessionExtensions>) -> Option<Arc<dyn LoginRenewer>> {
    Some(Arc::new(LoginsOfExtensions(extensions?.logins())))
}

impl LoginRenewer for LoginsOfExtensions {
    fn renews(&self, provider: &str) -> bool {
        self.0.renews(provider)
    }

    fn renew<'a>(
        &'a self,
        provider: &'a str,
        login: &'a Map<String, Value>,
    ) -> LoginStep<'a, Map<String, Value>> {
        Box::pin(self.0.renew(provider, login))
    }

    fn key<'a>(&'a self, provider: &'a str, login: &'a Map<String, Value>) -> LoginStep<'a, String> {
        Box::pin(self.0.key(provider, login))
    }
}

/// Has the extensions change the lists of their models for the logins that are stored. `base` are the models without those of extensions. Says
/// whether something is different than before. A provider whose extension fails has its models unchanged, and the failure is told.
pub(crate) async fn modify_models(
    extensions: &SessionExtensions,
    auth: &Auth,
    base: &Arc<ModelRegistry>,
) -> bool {
    let mut is_changed = false;
    for provider in extensions.modifying_providers() {
        let modified = match auth.whole_login(&provider).await {
            Some(login) => {
                let (all, of, name) = (Arc::clone(base), extensions.clone(), provider.clone());
                let listed = tokio::task::spawn_blocking(move || unmodified_models(&all, &of, &name)).await;
                // It fails only when the runtime ends.
                modified(extensions, &provider, &login, &listed.unwrap_or_default()).await
            }
            None => None,
        };
        is_changed |= extensions.set_modified_models(&provider, modified);
    }
    is_changed
}

async fn modified(
    extensions: &SessionExtensions,
    provider: &str,
    login: &Map<String, Value>,
    models: &[Value],
) -> Option<Vec<Value>> {
    match extensions.logins().modify_models(provider, login, models).await {
        // Models of others are not its own to change.
        Ok(modified) => modified.map(|mut models| {
            models.retain(|model| model.get("provider").is_none_or(|own| own == provider));
            models
        }),
        Err(error) => {
            let known = extensions.providers().into_iter().find(|known| known.id == provider);
            let path = known.map_or_else(|| "<runtime>".to_owned(), |known| known.extension);
            extensions.model_failed(path, "modify_models", error);
            None
        }
    }
}
