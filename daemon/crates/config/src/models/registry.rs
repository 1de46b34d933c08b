//! The models that the user configured, and how their providers are reached.

use std::{collections::HashMap, path::Path, sync::Arc};

use agentd_protocol::{model::Model, models_file::ConfigValue};

use super::{DEMO_MODEL, DEMO_PROVIDER, demo, file};

/// All configured models in the order of the file. Immutable: a changed file makes a new registry.
#[derive(Debug, Clone, Default)]
pub struct ModelRegistry {
    models: Vec<Arc<Model>>,
    providers: Vec<ProviderConfig>,
    load_error: Option<String>,
}

/// How a provider is reached. Kept apart from [`Model`], which clients see, since all of this can be secret.
#[derive(Debug, Clone, Default)]
pub struct ProviderConfig {
    /// The id that models name.
    pub id: String,
    /// A name to show.
    pub name: String,
    /// Where the provider's requests go, unless a model says otherwise.
    pub base_url: Option<String>,
    /// Where the key comes from.
    pub api_key: Option<ConfigValue>,
    /// Headers of every request.
    pub headers: Vec<(String, ConfigValue)>,
    /// Whether `Authorization: Bearer <key>` is sent besides.
    pub auth_header: bool,
    /// Headers of single models, by model id.
    pub(super) model_headers: HashMap<String, Vec<(String, ConfigValue)>>,
}

impl ProviderConfig {
    /// The headers of a model; a name that the provider sets too counts with the model's value.
    #[must_use]
    pub fn headers_of(&self, model_id: &str) -> Vec<(&str, &ConfigValue)> {
        let own = self.model_headers.get(model_id).map(Vec::as_slice).unwrap_or_default();
        let hidden = |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let shared = self.headers.iter().filter(|(name, _)| !hidden(name));
        shared.chain(own).map(|(name, value)| (name.as_str(), value)).collect()
    }
}

impl ModelRegistry {
    /// Loads `models.json`. Never fails: with a file that cannot be used the registry is empty and
    /// [`ModelRegistry::load_error`] says why; without a file it is just empty.
    #[must_use]
    pub fn load(path: &Path) -> Self {
        match file::load(path) {
            Ok((models, providers)) => Self { models, providers, load_error: None },
            Err(error) => Self { load_error: Some(error), ..Self::default() },
        }
    }

    /// Every configured model, in the order of the file, whether usable or not; without the demo model.
    #[must_use]
    pub fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// The model with exactly this provider and id; the demo model too.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let configured = self.models.iter().find(|model| model.provider == provider && model.id == id);
        let demo = || (provider == DEMO_PROVIDER && id == DEMO_MODEL).then(demo::model);
        configured.cloned().or_else(demo)
    }

    /// A provider of the file.
    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&ProviderConfig> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// What is wrong with `models.json`, for the user.
    #[must_use]
    pub fn load_error(&self) -> Option<&str> {
        self.load_error.as_deref()
    }

    #[cfg(test)]
    pub(super) fn of(models: Vec<Arc<Model>>) -> Self {
        Self { models, ..Self::default() }
    }
}
