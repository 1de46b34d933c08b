//! Models for tests.

use std::sync::Arc;

use agentd_protocol::model::Model;

use super::{ModelRegistry, UsableModels};

/// The API that [`TestModels`] speaks.
pub(super) const API: &str = "api";

pub(super) fn model(provider: &str, id: &str) -> Arc<Model> {
    let (id, reasoning) = match id.strip_suffix('!') {
        Some(id) => (id, true),
        None => (id, false),
    };
    Arc::new(Model {
        id: id.into(),
        name: format!("Name of {id}"),
        api: API.into(),
        provider: provider.into(),
        base_url: "http://h".into(),
        reasoning,
        ..Model::placeholder()
    })
}

/// Models written as `provider/id`, with `!` behind those that reason; providers with credentials.
pub(super) struct TestModels {
    pub(super) registry: ModelRegistry,
    has_auth: Box<dyn Fn(&str) -> bool>,
}

impl TestModels {
    pub(super) fn new(models: &[&str], with_auth: &'static [&'static str]) -> Self {
        let split = |text: &&str| {
            let (provider, id) = text.split_once('/').unwrap();
            model(provider, id)
        };
        Self {
            registry: ModelRegistry::of(models.iter().map(split).collect()),
            has_auth: Box::new(|provider| with_auth.contains(&provider)),
        }
    }

    /// Lets the models of a provider speak an API that [`TestModels::offer`] does not have.
    pub(super) fn silent(self, provider: &str) -> Self {
        let models = self.registry.of_file().map(|model| {
            let mut model = Model::clone(model);
            if model.provider == provider {
                model.api = "morse".into();
            }
            Arc::new(model)
        });
        Self { registry: ModelRegistry::of(models.collect()), ..self }
    }

    pub(super) fn offer(&self) -> UsableModels<'_> {
        UsableModels {
            registry: &self.registry,
            apis: &[API, "scripted"],
            has_auth: &*self.has_auth,
            plan: &|_| None,
        }
    }
}

pub(super) fn full_id(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}
