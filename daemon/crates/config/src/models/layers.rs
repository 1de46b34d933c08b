//! Providers and virtual models of extensions: a layer between the catalogue and `models.json`.

use std::sync::Arc;

use agentd_protocol::{
    model::{Model, ThinkingLevel},
    models_file::ProviderEntry,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ModelRegistry, ProviderConfig,
    extended::Extended,
    file_provider::{FileProvider, Patched},
};

/// The API of virtual models: each of their requests is made to another model, which a router of an extension chooses.
pub const VIRTUAL_API: &str = "pi-virtual";

/// The fields of a provider that are those of `models.json`.
const SHARED_FIELDS: [&str; 7] = ["name", "baseUrl", "apiKey", "api", "headers", "authHeader", "models"];

/// What extensions say about one provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderLayer {
    /// The provider's id.
    pub id: String,
    /// The fields of `models.json`, as pi's `registerProvider` takes them; `None` where only virtual models are added.
    pub fields: Option<Map<String, Value>>,
    /// Whether its requests need no key of ours.
    pub needs_no_key: bool,
    /// The virtual models.
    pub virtual_models: Vec<Arc<Model>>,
}

/// A virtual model as an extension describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VirtualModel {
    provider: String,
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    thinking_levels: Option<Vec<ThinkingLevel>>,
    #[serde(default)]
    context_window: u64,
    #[serde(default)]
    max_tokens: u64,
    #[serde(default)]
    input: Option<Vec<String>>,
}

/// The catalogue entry of a virtual model.
///
/// # Errors
/// What cannot be read.
pub fn virtual_model(described: Map<String, Value>) -> Result<Model, serde_json::Error> {
    let VirtualModel { provider, id, name, thinking_levels, context_window, max_tokens, input } =
        serde_json::from_value(Value::Object(described))?;
    let levels = thinking_levels.unwrap_or_else(|| vec![ThinkingLevel::Off]);
    let mapped = ThinkingLevel::ALL.iter().map(|level| {
        let value = if levels.contains(level) { level.as_str().into() } else { Value::Null };
        (level.as_str().to_owned(), value)
    });
    Ok(Model {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        provider,
        api: VIRTUAL_API.to_owned(),
        reasoning: levels.iter().any(|level| *level != ThinkingLevel::Off),
        thinking_level_map: Some(mapped.collect()),
        input: input.unwrap_or_else(|| vec!["text".to_owned(), "image".to_owned()]),
        context_window,
        max_tokens,
        ..Model::placeholder()
    })
}

impl ModelRegistry {
    /// The same models with those of extensions among them, `models.json` above all. With it come the ids of providers of which nothing
    /// counts, and why. Unpacks the providers that are changed.
    #[must_use]
    pub fn extended_by(self: &Arc<Self>, layers: &[ProviderLayer]) -> (Arc<Self>, Vec<(String, String)>) {
        let base = self.base();
        if layers.is_empty() {
            return (Arc::clone(base), Vec::new());
        }
        let (mut extended, mut problems) = (Vec::new(), Vec::new());
        for layer in layers {
            match base.extended_provider(layer) {
                Ok(provider) => extended.push(provider),
                Err(problem) => problems.push((layer.id.clone(), problem)),
            }
        }
        (Arc::new(base.with_extended(extended)), problems)
    }

    fn extended_provider(&self, layer: &ProviderLayer) -> Result<Extended, String> {
        let builtin: Vec<Arc<Model>> = self.of_catalogue_provider(&layer.id);
        let listed = self.listed(&layer.id);
        let (mut config, known) = match &layer.fields {
            Some(fields) => {
                let (provider, replaces) = self.provider_of(&layer.id, fields)?;
                let models = provider.over_catalogue(&builtin, replaces)?;
                (provider.config, models)
            }
            None => {
                let config = self.provider(&layer.id).cloned().unwrap_or_else(|| ProviderConfig {
                    id: layer.id.clone(),
                    name: layer.id.clone(),
                    // Only virtual models are there.
                    needs_no_key: true,
                    ..ProviderConfig::default()
                });
                (config, builtin)
            }
        };
        config.needs_no_key |= layer.needs_no_key;
        let mut models = match listed {
            Some(listed) => listed.over_extension(&known),
            None => Patched { known, added: Vec::new() },
        };
        if let (Some(listed), true) = (listed, layer.fields.is_some()) {
            config = config.under(&listed.config);
        }
        let hidden = |model: &Arc<Model>| layer.virtual_models.iter().any(|other| other.id == model.id);
        models.known.retain(|model| !hidden(model));
        models.added.retain(|model| !hidden(model));
        models.known.extend(layer.virtual_models.iter().cloned());
        Ok(Extended { config, models })
    }

    /// A provider as an extension gives it, and whether its models are all that there are.
    fn provider_of(&self, id: &str, fields: &Map<String, Value>) -> Result<(FileProvider, bool), String> {
        let mut shared = Map::new();
        for name in SHARED_FIELDS {
            if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
                shared.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(Value::Array(models)) = shared.get_mut("models") {
            // Others than chat models are not offered.
            models.retain(|model| matches!(model["type"].as_str(), None | Some("chat")));
        }
        let replaces = shared.contains_key("models");
        let entry: ProviderEntry = serde_json::from_value(Value::Object(shared))
            .map_err(|error| format!("Provider {id}: {error}"))?;
        FileProvider::new(id.to_owned(), entry, self.catalogue_of_files())
            .map(|provider| (provider, replaces))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn layer(id: &str, fields: Value) -> ProviderLayer {
        let Value::Object(fields) = fields else { panic!() };
        ProviderLayer { id: id.to_owned(), fields: Some(fields), ..ProviderLayer::default() }
    }

    fn file(text: &str) -> Arc<ModelRegistry> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        std::fs::write(&path, text).unwrap();
        Arc::new(ModelRegistry::load(&path))
    }

    #[test]
    fn a_new_provider_has_its_models_and_the_file_lies_above() {
        let base =
            file(r#"{"providers":{"own":{"baseUrl":"http://stub","modelOverrides":{"m":{"name":"Mine"}}}}}"#);
        let fields = json!({
            "name": "Own", "baseUrl": "http://real", "api": "own-api", "apiKey": "k", "headers": {"a": "1"},
            "models": [{"id": "m", "name": "M", "contextWindow": 10, "headers": {"b": "2"}}, {"id": "i", "type": "image"}],
        });
        let (models, problems) = base.extended_by(&[layer("own", fields)]);
        assert_eq!(problems, []);
        let model = models.find("own", "m").unwrap();
        assert_eq!(
            (model.name.as_str(), model.base_url.as_str(), model.api.as_str()),
            ("Mine", "http://stub", "own-api")
        );
        assert!(models.find("own", "i").is_none());
        let config = models.provider("own").unwrap();
        assert_eq!(config.api_key.as_ref().unwrap().expose(), "k");
        assert_eq!(config.headers_of("m").len(), 2);
        assert!(models.providers().any(|id| id == "own"));
        assert!(models.select(&|id| id == "own").any(|model| model.id == "m"));
        // Without the layer it is as before.
        let (before, _) = models.extended_by(&[]);
        assert!(Arc::ptr_eq(&before, &base));
    }

    #[test]
    fn a_provider_of_the_catalogue_is_redirected_or_replaced() {
        let base = Arc::new(ModelRegistry::builtin());
        let count = base.models_of("anthropic").count();
        let (models, _) = base.extended_by(&[layer("anthropic", json!({"baseUrl": "http://gate"}))]);
        assert_eq!(models.models_of("anthropic").count(), count);
        assert!(models.models_of("anthropic").all(|model| model.base_url == "http://gate"));
        let (models, _) = base.extended_by(&[layer("anthropic", json!({"models": [{"id": "one"}]}))]);
        let left: Vec<_> = models.models_of("anthropic").collect();
        assert_eq!((left.len(), left[0].id.as_str(), left[0].api.as_str()), (1, "one", "anthropic-messages"));
        assert_eq!(models.providers().filter(|id| *id == "anthropic").count(), 1);
        let (_, problems) = base.extended_by(&[layer("new", json!({"models": [{"id": "one"}]}))]);
        assert!(problems[0].1.contains("no \"api\" specified"), "{problems:?}");
    }

    #[test]
    fn virtual_models_are_listed_and_need_no_key() {
        let described =
            json!({"provider": "router", "id": "auto", "name": "Auto", "thinkingLevels": ["off", "high"]});
        let Value::Object(described) = described else { panic!() };
        let model = virtual_model(described).unwrap();
        assert_eq!(model.thinking_levels(), [ThinkingLevel::Off, ThinkingLevel::High]);
        let layer = ProviderLayer {
            id: "router".to_owned(),
            virtual_models: vec![Arc::new(model)],
            ..ProviderLayer::default()
        };
        let (models, _) = Arc::new(ModelRegistry::builtin()).extended_by(&[layer]);
        assert_eq!(models.find("router", "auto").unwrap().api, VIRTUAL_API);
        assert!(models.provider("router").unwrap().needs_no_key);
    }
}
