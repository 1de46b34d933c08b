//! The providers and virtual models of a session's extensions, among its models.

use std::sync::Arc;

use agentd_config::models::{ModelRegistry, ProviderLayer, VIRTUAL_API, virtual_model};
use agentd_extensions::SessionExtensions;

use crate::services::Services;

/// A provider or a virtual model of which nothing counts.
pub(crate) struct UnusableModels {
    /// The extension.
    pub(crate) extension: String,
    /// What it did.
    pub(crate) event: &'static str,
    /// Why.
    pub(crate) error: String,
}

/// The models with what extensions add to them and change in them, and what could not be used. Where no extension says anything of models
/// they are as they were. Blocks.
pub(crate) fn extend_models(
    models: &Arc<ModelRegistry>,
    extensions: Option<&SessionExtensions>,
) -> (Arc<ModelRegistry>, Vec<UnusableModels>) {
    let Some(extensions) = extensions else { return (Arc::clone(models), Vec::new()) };
    let providers = extensions.providers();
    let mut layers: Vec<ProviderLayer> = providers
        .iter()
        .map(|provider| ProviderLayer {
            id: provider.id.clone(),
            fields: Some(provider.fields.clone()),
            needs_no_key: provider.authorises,
            virtual_models: Vec::new(),
        })
        .collect();
    let mut unusable = Vec::new();
    for described in extensions.virtual_models() {
        let model = match virtual_model(described.model) {
            Ok(model) => model,
            Err(error) => {
                let (extension, error) = (described.extension, error.to_string());
                unusable.push(UnusableModels { extension, event: "register_virtual_model", error });
                continue;
            }
        };
        let physical = models.base().find(&model.provider, &model.id);
        if physical.is_some_and(|known| known.api != VIRTUAL_API) {
            let error =
                format!("Virtual model {}/{} conflicts with a physical model.", model.provider, model.id);
            let extension = described.extension;
            unusable.push(UnusableModels { extension, event: "register_virtual_model", error });
            continue;
        }
        match layers.iter_mut().find(|layer| layer.id == model.provider) {
            Some(layer) => layer.virtual_models.push(Arc::new(model)),
            None => layers.push(ProviderLayer {
                id: model.provider.clone(),
                virtual_models: vec![Arc::new(model)],
                ..ProviderLayer::default()
            }),
        }
    }
    let (extended, problems) = models.extended_by(&layers);
    unusable.extend(problems.into_iter().map(|(id, error)| {
        let extension = providers.iter().find(|provider| provider.id == id);
        let extension = extension.map_or_else(|| "<runtime>".to_owned(), |it| it.extension.clone());
        UnusableModels { extension, event: "register_provider", error }
    }));
    (extended, unusable)
}

/// The APIs that models of a session may have: those of this build, and those of its extensions.
pub(crate) fn spoken_apis(services: &Services, extensions: Option<&SessionExtensions>) -> Vec<String> {
    let mut apis: Vec<String> = services.providers.apis().map(str::to_owned).collect();
    if let Some(extensions) = extensions {
        apis.extend(extensions.apis());
        if !extensions.virtual_models().is_empty() {
            apis.push(VIRTUAL_API.to_owned());
        }
    }
    apis
}
