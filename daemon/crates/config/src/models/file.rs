//! `models.json` read, checked, and turned into models.

use std::{collections::HashMap, path::Path, sync::Arc};

use agentd_protocol::{
    model::Model,
    models_file::{ConfigValue, InOrder, ModelEntry, ModelFields, ModelsFile, ProviderEntry},
};
use serde_json::{Map, Value};

use super::registry::ProviderConfig;
use crate::json_file::{JsonFileError, read_json, without_value};

type Loaded = (Vec<Arc<Model>>, Vec<ProviderConfig>);

const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// Reads the file. The error is a text for the user: what is wrong where, and in which file.
pub(super) fn load(path: &Path) -> Result<Loaded, String> {
    let document = match read_json(path) {
        Ok(Some(document)) => document,
        Ok(None) => return Ok(Loaded::default()),
        Err(error @ JsonFileError::Syntax { .. }) => {
            return Err(format!("Failed to parse models.json: {error}"));
        }
        Err(error) => return Err(format!("Failed to load models.json: {error}")),
    };
    // A file that is there but says nothing yet.
    if document.value.as_object().is_some_and(Map::is_empty) {
        return Ok(Loaded::default());
    }
    let invalid = |what: String| format!("Invalid models.json schema: {what}\n\nFile: {}", path.display());
    if !document.value.is_object() {
        return Err(invalid("expected an object with \"providers\"".into()));
    }
    let file: ModelsFile = serde_path_to_error::deserialize(document.value).map_err(|error| {
        let what = without_value(&error.inner().to_string());
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!("{place}: ") };
        invalid(format!("{place}{what}"))
    })?;
    build(file).map_err(|what| format!("Failed to load models.json: {what}\n\nFile: {}", path.display()))
}

fn build(file: ModelsFile) -> Result<Loaded, String> {
    let (mut models, mut providers) = Loaded::default();
    for (id, entry) in file.providers {
        if id.is_empty() {
            return Err("a provider has an empty name.".into());
        }
        if says_nothing(&entry) {
            return Err(format!(
                "Provider {id}: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\"."
            ));
        }
        let (provider, of_provider) = provider(id, entry)?;
        providers.push(provider);
        models.extend(of_provider);
    }
    Ok((models, providers))
}

fn says_nothing(entry: &ProviderEntry) -> bool {
    entry.base_url.is_none()
        && entry.headers.as_ref().is_none_or(InOrder::is_empty)
        && entry.compat.is_none()
        && entry.model_overrides.as_ref().is_none_or(InOrder::is_empty)
        && entry.models.as_ref().is_none_or(Vec::is_empty)
}

fn provider(id: String, entry: ProviderEntry) -> Result<(ProviderConfig, Vec<Arc<Model>>), String> {
    let shared =
        Shared { provider: &id, api: entry.api, base_url: entry.base_url.as_deref(), compat: entry.compat };
    let mut models: Vec<Arc<Model>> = Vec::new();
    let mut model_headers = HashMap::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for ModelEntry { id: model_id, mut fields } in entry.models.unwrap_or_default() {
        match fields.headers.take() {
            Some(headers) => model_headers.insert(model_id.clone(), in_order(headers)),
            None => model_headers.remove(&model_id),
        };
        let model = Arc::new(shared.model(model_id.clone(), fields)?);
        match places.get(&model_id) {
            Some(&place) => models[place] = model,
            None => {
                places.insert(model_id, models.len());
                models.push(model);
            }
        }
    }
    let config = ProviderConfig {
        name: entry.name.unwrap_or_else(|| id.clone()),
        base_url: entry.base_url.clone(),
        api_key: entry.api_key,
        headers: entry.headers.map(in_order).unwrap_or_default(),
        auth_header: entry.auth_header.unwrap_or(false),
        model_headers,
        id: id.clone(),
    };
    Ok((config, models))
}

fn in_order(headers: InOrder<ConfigValue>) -> Vec<(String, ConfigValue)> {
    headers.into_iter().collect()
}

/// What the models of a provider share.
struct Shared<'a> {
    provider: &'a str,
    api: Option<String>,
    base_url: Option<&'a str>,
    compat: Option<Map<String, Value>>,
}

impl Shared<'_> {
    fn model(&self, id: String, fields: ModelFields) -> Result<Model, String> {
        let missing = |what: &str, example: &str| {
            format!(
                "Provider {}, model {id}: no \"{what}\" specified: set it on the model or the provider, such as \"{example}\".",
                self.provider
            )
        };
        let api = fields.api.or_else(|| self.api.clone()).filter(|api| !api.is_empty());
        let api = api.ok_or_else(|| missing("api", "openai-completions"))?;
        let base_url =
            fields.base_url.or_else(|| self.base_url.map(str::to_owned)).filter(|url| !url.is_empty());
        let base_url = base_url.ok_or_else(|| missing("baseUrl", "http://127.0.0.1:8080/v1"))?;
        Ok(Model {
            name: fields.name.unwrap_or_else(|| id.clone()),
            api,
            provider: self.provider.to_owned(),
            base_url,
            reasoning: fields.reasoning.unwrap_or(false),
            thinking_level_map: fields.thinking_level_map,
            input: fields.input.unwrap_or_else(|| vec!["text".into()]),
            cost: fields.cost.unwrap_or_default(),
            context_window: fields.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_tokens: fields.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            compat: merge_compat(self.compat.as_ref(), fields.compat),
            sampling_params: fields.sampling_params,
            id,
        })
    }
}

/// The provider's switches with the model's over them. A switch that is itself an object is merged member by member.
fn merge_compat(
    provider: Option<&Map<String, Value>>,
    model: Option<Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let (mut merged, model) = match (provider, model) {
        (None, model) => return model,
        (Some(provider), None) => return Some(provider.clone()),
        (Some(provider), Some(model)) => (provider.clone(), model),
    };
    for (key, value) in model {
        match (merged.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(over)) => below.extend(over),
            (_, value) => {
                merged.insert(key, value);
            }
        }
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn load_text(text: &str) -> Result<Loaded, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        std::fs::write(&path, text).unwrap();
        load(&path).map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    fn check_error(text: &str, expected: &str) {
        let error = load_text(text).unwrap_err();
        assert!(!error.contains("hush"), "{error}");
        assert_eq!(error, expected, "{text}");
    }

    #[test]
    fn defaults_are_filled_in() {
        let (models, _) = load_text(
            r#"{"providers": { // mine
                "p": {"baseUrl":"http://h/v1","api":"openai-completions","apiKey":"$K","models":[{"id":"m"},]},
            }}"#,
        )
        .unwrap();
        assert_eq!(
            serde_json::to_value(&*models[0]).unwrap(),
            json!({"id": "m", "name": "m", "api": "openai-completions", "provider": "p", "baseUrl": "http://h/v1",
                "reasoning": false, "input": ["text"], "contextWindow": 128_000, "maxTokens": 16_384,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}})
        );
    }

    #[test]
    fn the_model_wins_over_the_provider_and_the_last_of_an_id_over_the_first() {
        let (models, providers) = load_text(
            r#"{"providers":{"b":{"baseUrl":"u","api":"a","compat":{"x":1,"deep":{"a":1,"b":1}},"headers":{"X-A":"1","X-B":"1"},
                "models":[{"id":"m","name":"first"},{"id":"n","api":"other","baseUrl":"v","headers":{"x-a":"2"},
                "compat":{"x":2,"deep":{"b":2}}},{"id":"m","name":"second","cost":{"input":1.5}}]},
                "a":{"baseUrl":"u"}}}"#,
        )
        .unwrap();
        let names: Vec<_> = models.iter().map(|model| (model.id.as_str(), model.name.as_str())).collect();
        assert_eq!(names, [("m", "second"), ("n", "n")]);
        assert_eq!((models[1].api.as_str(), models[1].base_url.as_str()), ("other", "v"));
        assert_eq!(Value::from(models[1].compat.clone().unwrap()), json!({"x": 2, "deep": {"a": 1, "b": 2}}));
        let ids: Vec<_> = providers.iter().map(|provider| provider.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
        let headers = |id| {
            let headers = providers[0].headers_of(id);
            headers.into_iter().map(|(name, value)| format!("{name}={}", value.expose())).collect::<Vec<_>>()
        };
        assert_eq!(headers("m"), ["X-A=1", "X-B=1"]);
        assert_eq!(headers("n"), ["X-B=1", "x-a=2"]);
    }

    #[test]
    fn nothing_secret_is_in_debug_output() {
        let text = r#"{"providers":{"p":{"baseUrl":"u","api":"a","apiKey":"hush","headers":{"h":"hush"},
            "models":[{"id":"m","headers":{"h":"hush"}}]}}}"#;
        let shown = format!("{:?}", load_text(text).unwrap());
        assert!(shown.contains("[secret]") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn missing_and_empty_files_are_empty() {
        assert!(load(Path::new("/nonexistent/models.json")).unwrap().0.is_empty());
        for text in ["", "{}", "// later"] {
            assert!(load_text(text).unwrap().0.is_empty());
        }
    }

    #[test]
    fn errors_name_the_place() {
        check_error(
            "{\n\"providers\": hush\n}",
            "Failed to parse models.json: models.json, line 2, column 14: expected value",
        );
        let schema = |text: &str, what: &str| {
            check_error(text, &format!("Invalid models.json schema: {what}\n\nFile: models.json"));
        };
        schema("[]", "expected an object with \"providers\"");
        schema(r#"{"x":1}"#, "missing field `providers`");
        schema(r#"{"providers":"hush"}"#, "providers: expected an object, not a string");
        schema(r#"{"providers":{"p":"hush"}}"#, "providers.p: expected an object, not a string");
        schema(r#"{"providers":{"p":{"apiKey":["hush"]}}}"#, "providers.p.apiKey: expected a string");
        schema(
            r#"{"providers":{"p":{"headers":"hush"}}}"#,
            "providers.p.headers: expected an object, not a string",
        );
        schema(
            r#"{"providers":{"p":{"models":[{"id":"a"},{"name":"b"}]}}}"#,
            "providers.p.models[1]: missing field `id`",
        );
        schema(
            r#"{"providers":{"p":{"models":[{"id":"a","reasoning":"hush"}]}}}"#,
            "providers.p.models[0]: reasoning: expected a boolean, not a string",
        );
        let semantic = |text: &str, what: &str| {
            check_error(text, &format!("Failed to load models.json: {what}\n\nFile: models.json"));
        };
        let nothing = "Provider p: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\".";
        semantic(r#"{"providers":{"p":{"apiKey":"hush"}}}"#, nothing);
        semantic(r#"{"providers":{"p":{"models":[],"headers":{}}}}"#, nothing);
        semantic(
            r#"{"providers":{"p":{"baseUrl":"u","models":[{"id":"m"}]}}}"#,
            "Provider p, model m: no \"api\" specified: set it on the model or the provider, such as \"openai-completions\".",
        );
        semantic(
            r#"{"providers":{"p":{"api":"a","models":[{"id":"m"}]}}}"#,
            "Provider p, model m: no \"baseUrl\" specified: set it on the model or the provider, such as \"http://127.0.0.1:8080/v1\".",
        );
    }

    #[test]
    fn a_directory_in_its_place_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(
            error.starts_with("Failed to load models.json: ") && error.contains("no regular file"),
            "{error}"
        );
    }
}
