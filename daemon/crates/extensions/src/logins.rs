//! Logins with providers of extensions: the functions `refreshToken` and `getApiKey` of `oauth`.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Map, Value, json};

use crate::{
    connection::{RequestError, RequestTerms},
    extensions::SessionExtensions,
    runtime::Runtime,
};

/// Time for a step of a login. Shorter than what other processes wait for the file of logins meanwhile.
const STEP_WAIT: Duration = Duration::from_secs(30);

/// The logins with the providers of a session's extensions. Cheap to clone; it keeps no extension alive.
#[derive(Clone)]
pub struct ExtensionLogins(Weak<Runtime>);

impl SessionExtensions {
    /// The logins with their providers.
    #[must_use]
    pub fn logins(&self) -> ExtensionLogins {
        ExtensionLogins(Arc::downgrade(&self.0))
    }
}

impl ExtensionLogins {
    /// Whether an extension renews the logins with a provider.
    #[must_use]
    pub fn renews(&self, provider: &str) -> bool {
        self.0.upgrade().is_some_and(|runtime| {
            ["refreshToken", "getApiKey"].into_iter().all(|name| function(&runtime, provider, name).is_some())
        })
    }

    /// The new credential for one that has ended.
    ///
    /// # Errors
    /// Why there is none, for the user.
    ///
    /// Cancel safety: dropped early, the extension is asked to stop.
    pub async fn renew(
        &self,
        provider: &str,
        login: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        match self.step(provider, ("refresh", "refreshToken"), login).await? {
            Value::Object(renewed) => Ok(renewed),
            _ => Err("the extension of the provider returned no credential".to_owned()),
        }
    }

    /// The key of a credential, as requests carry it.
    ///
    /// # Errors
    /// Why there is none, for the user.
    ///
    /// Cancel safety: as of [`Self::renew`].
    pub async fn key(&self, provider: &str, login: &Map<String, Value>) -> Result<String, String> {
        match self.step(provider, ("apiKey", "getApiKey"), login).await? {
            Value::String(key) => Ok(key),
            _ => Err("the extension of the provider returned no key".to_owned()),
        }
    }

    async fn step(
        &self,
        provider: &str,
        (step, name): (&str, &str),
        login: &Map<String, Value>,
    ) -> Result<Value, String> {
        let gone = || "the extension of the provider is gone".to_owned();
        let runtime = self.0.upgrade().ok_or_else(gone)?;
        let (extension, cb) = function(&runtime, provider, name).ok_or_else(gone)?;
        let fields =
            json!({"epoch": runtime.epoch_of(extension), "cb": cb, "step": step, "credential": login});
        let terms = RequestTerms { limit: Some(STEP_WAIT), ..RequestTerms::default() };
        let answer = runtime.host_of(extension).request("provider.oauth", &fields, terms).await;
        let answer = answer.map_err(|error| match error {
            RequestError::Late => {
                format!("Extension \"{}\" did not answer in time", runtime.path(extension))
            }
            error => runtime.explain(&error, name),
        })?;
        serde_json::from_str(answer.get()).map_err(|error| error.to_string())
    }
}

/// A function of a provider's login, and its extension.
fn function(runtime: &Runtime, provider: &str, name: &str) -> Option<(usize, u64)> {
    let registrations = runtime.registrations();
    let known =
        registrations.models.providers.iter().find(|known| known.id == provider && !known.is_native)?;
    Some((known.extension, known.function(&["oauth", name])?))
}
