//! The providers and virtual models of a session's extensions, among its models.

use std::sync::Arc;

use agentd_config::models::{ModelRegistry, ProviderLayer, VIRTUAL_API, virtual_model};
use agentd_extensions::{ExtensionProvider, SessionExtensions};
use agentd_protocol::model::Model;
use serde_json::{Map, Value, json};

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
    with_providers(models, extensions, extensions.providers())
}

/// The models of a provider of an extension as they are without its `modifyModels`, as that function gets them. Blocks.
pub(crate) fn unmodified_models(
    models: &Arc<ModelRegistry>,
    extensions: &SessionExtensions,
    provider: &str,
) -> Vec<Value> {
    let mut providers = extensions.providers();
    for provider in &mut providers {
        provider.modified = None;
    }
    let (models, _) = with_providers(models, extensions, providers);
    let whole = |model: &Arc<Model>| {
        let mut whole = json!(&**model);
        // Models are shown without what stands in their addresses.
        whole["baseUrl"] = model.base_url.as_str().into();
        whole
    };
    models.models_of(provider).filter(|model| model.api != VIRTUAL_API).map(whole).collect()
}

fn with_providers(
    models: &Arc<ModelRegistry>,
    extensions: &SessionExtensions,
    providers: Vec<ExtensionProvider>,
) -> (Arc<ModelRegistry>, Vec<UnusableModels>) {
    let mut layers: Vec<ProviderLayer> = providers
        .iter()
        .map(|provider| ProviderLayer {
            id: provider.id.clone(),
            fields: Some(fields(provider)),
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

/// The fields of a provider, with its models for the login that is stored.
fn fields(provider: &ExtensionProvider) -> Map<String, Value> {
    let mut fields = provider.fields.clone();
    let Some(modified) = &provider.modified else { return fields };
    // Headers are not among what `modifyModels` gets: they may hold keys.
    let listed = fields.get("models").and_then(Value::as_array).cloned().unwrap_or_default();
    let models = modified.iter().map(|model| {
        let mut model = model.clone();
        let same = listed.iter().find(|known| known["id"] == model["id"]);
        if let (None, Some(headers)) = (model.get("headers"), same.and_then(|known| known.get("headers"))) {
            model["headers"] = headers.clone();
        }
        model
    });
    fields.insert("models".to_owned(), models.collect());
    fields
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_models_take_the_place_of_those_that_are_listed_and_keep_their_headers() {
        let Value::Object(listed) = json!({
            "baseUrl": "u", "models": [{"id": "m", "headers": {"a": "1"}}, {"id": "n", "headers": {"b": "2"}}],
        }) else {
            panic!()
        };
        let mut provider = ExtensionProvider {
            id: "p".to_owned(),
            extension: "e".to_owned(),
            fields: listed.clone(),
            authorises: false,
            modified: None,
        };
        assert_eq!(fields(&provider), listed);
        let own = json!({"id": "n", "headers": {"c": "3"}});
        provider.modified = Some(vec![json!({"id": "m", "name": "Mine"}), own.clone(), json!({"id": "new"})]);
        let expected = json!([{"id": "m", "name": "Mine", "headers": {"a": "1"}}, own, {"id": "new"}]);
        let changed = fields(&provider);
        assert_eq!((&changed["models"], &changed["baseUrl"]), (&expected, &json!("u")));
    }
}
