//! The providers and virtual models of extensions, as the session uses them.

use std::{sync::Arc, time::Duration};

use agentd_ai::Provider;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    connection::{RequestError, RequestTerms},
    extensions::SessionExtensions,
    provider_stream::HostProvider,
};

/// Time for a router to choose a model.
const ROUTE_WAIT: Duration = Duration::from_secs(60);

/// Time for a provider to say whether it has credentials, and to list its models.
const PROVIDER_WAIT: Duration = Duration::from_secs(60);

/// A provider that extensions have registered.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionProvider {
    /// Its id.
    pub id: String,
    /// The extension, as errors name it.
    pub extension: String,
    /// Its fields: those of `models.json`, and functions as `{"cb": number}`.
    pub fields: Map<String, Value>,
    /// Whether its requests are authorised by itself.
    pub authorises: bool,
    /// What its `modifyModels` made of its models for the login that is stored: these are all that there are.
    pub modified: Option<Vec<Value>>,
}

/// A virtual model that an extension has registered.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionVirtualModel {
    /// The extension, as errors name it.
    pub extension: String,
    /// Its description.
    pub model: Map<String, Value>,
}

/// The choice of a router.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The provider of the model.
    pub provider: String,
    /// The model.
    pub model_id: String,
    /// The thinking level.
    #[serde(default)]
    pub thinking_level: Option<String>,
    /// Another state to keep.
    #[serde(default)]
    pub state: Option<Value>,
}

impl SessionExtensions {
    /// The providers, in the order of their registrations.
    #[must_use]
    pub fn providers(&self) -> Vec<ExtensionProvider> {
        let registrations = self.0.registrations();
        let all = registrations.models.providers.iter().map(|provider| ExtensionProvider {
            id: provider.id.clone(),
            extension: self.0.path(provider.extension).to_owned(),
            fields: provider.fields.clone(),
            authorises: provider.is_native && provider.function(&["auth", "apiKey", "resolve"]).is_some(),
            modified: provider.modified.clone(),
        });
        all.collect()
    }

    /// The providers that change the list of their models for a login.
    #[must_use]
    pub fn modifying_providers(&self) -> Vec<String> {
        let registrations = self.0.registrations();
        let all = registrations.models.providers.iter();
        let all =
            all.filter(|known| !known.is_native && known.function(&["oauth", "modifyModels"]).is_some());
        all.map(|known| known.id.clone()).collect()
    }

    /// Puts what `modifyModels` made of the models of a provider in their place, or takes it away. Says whether that is something else than
    /// before.
    pub fn set_modified_models(&self, id: &str, models: Option<Vec<Value>>) -> bool {
        let mut registrations = self.0.registrations();
        let known = registrations.models.providers.iter_mut().find(|known| known.id == id);
        known.is_some_and(|known| {
            let is_other = known.modified != models;
            known.modified = models;
            is_other
        })
    }

    /// The virtual models, in the order of their registrations.
    #[must_use]
    pub fn virtual_models(&self) -> Vec<ExtensionVirtualModel> {
        let registrations = self.0.registrations();
        let all = registrations.models.virtual_models.iter().map(|model| ExtensionVirtualModel {
            extension: self.0.path(model.extension).to_owned(),
            model: model.model.clone(),
        });
        all.collect()
    }

    /// The APIs that only extensions speak.
    #[must_use]
    pub fn apis(&self) -> Vec<String> {
        let registrations = self.0.registrations();
        let mut apis = Vec::new();
        for provider in &registrations.models.providers {
            let own = provider.fields.get("api").and_then(Value::as_str);
            if provider.function(&["streamSimple"]).is_some() {
                apis.extend(own.map(str::to_owned));
            }
            if provider.is_native {
                let models = provider.fields.get("models").and_then(Value::as_array).into_iter().flatten();
                apis.extend(models.filter_map(|model| model["api"].as_str()).map(str::to_owned));
            }
        }
        apis
    }

    /// What answers requests to a provider's models of an API, if an extension does.
    #[must_use]
    pub fn provider_stream(&self, provider: &str, api: &str) -> Option<Arc<dyn Provider>> {
        let registrations = self.0.registrations();
        let registered = registrations.models.providers.iter().find(|known| known.id == provider)?;
        let cb = registered.stream(api)?;
        let authorises = registered.is_native.then(|| registered.function(&["auth", "apiKey", "resolve"]));
        Some(Arc::new(HostProvider {
            extensions: Arc::downgrade(&self.0),
            extension: registered.extension,
            cb,
            resolve: authorises.flatten(),
        }))
    }

    /// Asks the router of a virtual model. `request` is what it gets.
    ///
    /// # Errors
    /// Why there is no route.
    ///
    /// Cancel safety: dropped early, the router is asked to stop.
    pub async fn route(&self, provider: &str, id: &str, request: Value) -> Result<Route, String> {
        let found = {
            let registrations = self.0.registrations();
            let known = registrations.models.virtual_models.iter().find(|known| known.is(provider, id));
            known.map(|known| (known.extension, known.route))
        };
        let Some((extension, cb)) = found else {
            return Err(format!("Virtual model {provider}/{id} is not registered."));
        };
        let fields = json!({"epoch": self.0.epoch_of(extension), "cb": cb, "request": request});
        let terms = RequestTerms { limit: Some(ROUTE_WAIT), ..RequestTerms::default() };
        let answer = self.0.host_of(extension).request("vmodel.route", &fields, terms).await;
        let answer = answer.map_err(|error| match error {
            RequestError::Late => {
                format!("Extension \"{}\" did not answer in time", self.0.path(extension))
            }
            error => self.0.explain(&error, "vmodel.route"),
        })?;
        serde_json::from_str(answer.get()).map_err(|error| format!("The route cannot be used: {error}"))
    }

    /// Asks a provider for its models as they are now, where it can tell. `context` is what it gets.
    ///
    /// # Errors
    /// Why it did not tell.
    ///
    /// Cancel safety: dropped early, it is asked to stop.
    pub async fn refresh_provider(&self, id: &str, context: &Value) -> Result<Option<Value>, String> {
        let found = {
            let registrations = self.0.registrations();
            let known =
                registrations.models.providers.iter().find(|known| known.id == id && !known.is_native);
            known.and_then(|known| Some((known.extension, known.function(&["refreshModels"])?)))
        };
        let Some((extension, cb)) = found else { return Ok(None) };
        let fields = json!({"epoch": self.0.epoch_of(extension), "cb": cb, "context": context});
        let publish: crate::connection::CallServer = Arc::new(|call| call.answer(&Ok(Value::Null)));
        let terms =
            RequestTerms { limit: Some(PROVIDER_WAIT), served: Some(publish), ..RequestTerms::default() };
        let answer = self.0.host_of(extension).request("provider.refresh", &fields, terms).await;
        let answer = answer.map_err(|error| self.0.explain(&error, "provider.refresh"))?;
        let answer: Value = serde_json::from_str(answer.get()).map_err(|error| error.to_string())?;
        let Some(models) = answer.get("models").filter(|models| models.is_array()) else { return Ok(None) };
        let mut registrations = self.0.registrations();
        let known = registrations.models.providers.iter_mut().find(|known| known.id == id);
        if let Some(known) = known {
            known.fields.insert("models".to_owned(), models.clone());
        }
        Ok(Some(models.clone()))
    }

    /// Tells of a provider or a model that cannot be used.
    pub fn model_failed(&self, extension: String, event: &str, error: String) {
        self.0.failed(extension, event, error);
    }
}
