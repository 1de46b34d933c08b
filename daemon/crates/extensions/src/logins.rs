//! Logins with providers of extensions: the functions of `oauth`.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::{
    connection::{CallServer, RequestError, RequestTerms, ServedCall},
    extensions::SessionExtensions,
    record::HostFailure,
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

/// What a login wants of the user, or tells them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LoginAsk {
    /// An address to open in a browser.
    Auth {
        /// The address.
        url: String,
        /// What to do there.
        #[serde(default)]
        instructions: Option<String>,
    },
    /// A code to type into a browser on any device.
    DeviceCode {
        /// The code.
        user_code: String,
        /// The address.
        verification_uri: String,
    },
    /// How far it is.
    Progress {
        /// A text.
        message: String,
    },
    /// A question, answered by a text.
    Prompt {
        /// The question.
        message: String,
        /// An example.
        #[serde(default)]
        placeholder: Option<String>,
        /// Whether nothing is an answer.
        #[serde(default)]
        allow_empty: bool,
    },
    /// A question, answered by the id of an option.
    Select {
        /// The question.
        message: String,
        /// The options.
        options: Vec<LoginOption>,
    },
    /// The code or the address that the browser ended at, which the user may paste. The login need not wait for it.
    ManualCode,
}

/// An option of a [`LoginAsk::Select`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoginOption {
    /// The answer.
    pub id: String,
    /// The option as it is shown.
    pub label: String,
}

/// A [`LoginAsk`] that has come, to be answered once. Dropped without an answer, the extension hears that nobody answers.
pub struct LoginCall {
    /// What is asked or told.
    pub ask: LoginAsk,
    call: ServedCall,
}

impl LoginCall {
    /// Answers it: with nothing where nothing was asked or chosen.
    pub fn answer(self, answer: Option<String>) {
        self.call.answer(&Ok(answer.map_or(Value::Null, Value::String)));
    }

    /// Says why there is no answer; the function of the extension gets it as an exception.
    pub fn refuse(self, why: &str) {
        self.call.answer(&Err(HostFailure::new("cancelled", why)));
    }
}

impl ExtensionLogins {
    /// The providers that extensions log in to, in the order of their registrations.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        let Some(runtime) = self.0.upgrade() else { return Vec::new() };
        let registrations = runtime.registrations();
        let known = registrations.models.providers.iter();
        let known = known.filter(|known| !known.is_native && known.function(&["oauth", "login"]).is_some());
        known.map(|known| known.id.clone()).collect()
    }

    /// Logs in: what the extension asks and tells comes through `asked`, until this ends. There is no limit of time.
    ///
    /// # Errors
    /// Why there is no login, for the user: the text of the extension, or that its host has ended.
    ///
    /// Cancel safety: dropped early, the extension is asked to stop by the signal of its callbacks.
    pub async fn log_in(
        &self,
        provider: &str,
        asked: mpsc::UnboundedSender<LoginCall>,
    ) -> Result<Map<String, Value>, String> {
        let served: CallServer =
            Arc::new(move |call: ServedCall| match serde_json::from_value(call.params.clone()) {
                // Who does not take it has ended the login.
                Ok(ask) => drop(asked.send(LoginCall { ask, call })),
                Err(error) => call.answer(&Err(HostFailure::new("invalid", error.to_string()))),
            });
        let terms = RequestTerms { served: Some(served), ..RequestTerms::default() };
        match self.step(provider, ("login", "login"), &Map::new(), terms).await? {
            Value::Object(login) => Ok(login),
            _ => Err("the extension of the provider returned no credential".to_owned()),
        }
    }

    /// Has the extension of a provider change the list of its models for a login; `None` where it does not do that.
    ///
    /// # Errors
    /// Why there is no list, for the user.
    ///
    /// Cancel safety: as of [`Self::renew`].
    pub async fn modify_models(
        &self,
        provider: &str,
        login: &Map<String, Value>,
        models: &[Value],
    ) -> Result<Option<Vec<Value>>, String> {
        let has_it =
            self.0.upgrade().is_some_and(|runtime| function(&runtime, provider, "modifyModels").is_some());
        if !has_it {
            return Ok(None);
        }
        let fields = Map::from_iter([
            ("credential".to_owned(), Value::Object(login.clone())),
            ("models".to_owned(), models.to_vec().into()),
        ]);
        match self.step(provider, ("modifyModels", "modifyModels"), &fields, limited()).await? {
            Value::Array(models) => Ok(Some(models)),
            _ => Err("modifyModels returned no list of models".to_owned()),
        }
    }

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
        match self.step(provider, ("refresh", "refreshToken"), &of_login(login), limited()).await? {
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
        match self.step(provider, ("apiKey", "getApiKey"), &of_login(login), limited()).await? {
            Value::String(key) => Ok(key),
            _ => Err("the extension of the provider returned no key".to_owned()),
        }
    }

    async fn step(
        &self,
        provider: &str,
        (step, name): (&str, &str),
        more: &Map<String, Value>,
        terms: RequestTerms<'_>,
    ) -> Result<Value, String> {
        let gone = || "the extension of the provider is gone".to_owned();
        let runtime = self.0.upgrade().ok_or_else(gone)?;
        let (extension, cb) = function(&runtime, provider, name).ok_or_else(gone)?;
        let mut fields = more.clone();
        fields.extend([
            ("epoch".to_owned(), runtime.epoch_of(extension).into()),
            ("cb".to_owned(), cb.into()),
            ("step".to_owned(), step.into()),
        ]);
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

fn of_login(login: &Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([("credential".to_owned(), Value::Object(login.clone()))])
}

fn limited() -> RequestTerms<'static> {
    RequestTerms { limit: Some(STEP_WAIT), ..RequestTerms::default() }
}

/// A function of a provider's login, and its extension.
fn function(runtime: &Runtime, provider: &str, name: &str) -> Option<(usize, u64)> {
    let registrations = runtime.registrations();
    let known =
        registrations.models.providers.iter().find(|known| known.id == provider && !known.is_native)?;
    Some((known.extension, known.function(&["oauth", name])?))
}
