//! `models.json`, and the model that a session starts with.

use std::path::Path;

use agentd_config::models::{ModelRegistry, Offer, StartupRequest, choose_startup, resolve_scope};
use agentd_protocol::{doctor::Check, model::Model};

use super::{
    diagnose::{Found, show},
    finding::{Name, counted},
};

const FILE: Name = Name("models_file", "models.json");
const MODEL: Name = Name("model", "model");

/// What a user without a model can do.
pub(super) const NO_MODEL: &str = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, store a key with `agentctl login PROVIDER`, or \
                                   use a model server of your own with `agentctl setup local`.";

/// Whether the file can be used, and how much it says.
pub(super) fn file(path: &Path, registry: &ModelRegistry) -> Check {
    if let Some(error) = registry.load_error() {
        return FILE
            .problem(error, "Repair the file or remove it. Until then none of its models can be used.");
    }
    match agentd_config::read_json(path) {
        Ok(None) => FILE.ok(format!("no {}: only built-in models", show(path))),
        Ok(Some(document)) => {
            let providers = document.value.get("providers").and_then(serde_json::Value::as_object);
            let models =
                providers.into_iter().flatten().filter_map(|(_, entry)| entry.get("models")?.as_array());
            let models = models.map(Vec::len).sum();
            let providers = counted(providers.map_or(0, serde_json::Map::len), "provider");
            FILE.ok(format!("{}: {}, {providers}", show(path), counted(models, "model")))
        }
        // It was readable a moment ago.
        Err(error) => FILE.problem(error.to_string(), "Repair the file or remove it."),
    }
}

/// The model of a session that started now, and why it is that one.
pub(super) fn default_model(found: &Found) -> Check {
    let providers = agentd_ai::Registry::builtin();
    let apis: Vec<&str> = providers.apis().collect();
    let has_auth = |provider: &str| found.auth.is_configured(provider);
    let offer = Offer { registry: &found.registry, apis: &apis, has_auth: &has_auth };
    let settings = &found.settings.settings;
    let scope = resolve_scope(&offer, settings.enabled_models.as_deref().unwrap_or_default());
    let request = StartupRequest {
        provider: None,
        model: None,
        thinking: None,
        scope: &scope.models,
        session: None,
        settings,
    };
    let startup = match choose_startup(&offer, &request) {
        Ok(startup) => startup,
        Err(error) => return MODEL.problem(error.to_string(), NO_MODEL),
    };
    let model = &*startup.model;
    let wish = match (&settings.default_provider, &settings.default_model) {
        (Some(provider), Some(id)) => Some(format!("{provider}/{id}")),
        _ => None,
    };
    if model.is_placeholder() {
        return no_model(wish.as_deref());
    }
    let chosen = name(model);
    match wish.filter(|wish| *wish != chosen) {
        Some(wish) if scope.models.is_empty() => MODEL.warning(
            format!("{chosen}, since the default of the settings, {wish}, cannot be used"),
            "Change defaultProvider and defaultModel in settings.json; `agentctl models` lists what can be used.",
        ),
        other => {
            let why = if !scope.models.is_empty() {
                "the first of enabledModels in the settings"
            } else if other.is_none() && settings.default_model.is_some() {
                "the default of the settings"
            } else {
                "the first that a key is there for"
            };
            MODEL.ok(format!("{chosen} ({why}), thinking {}", startup.level.as_str()))
        }
    }
}

fn no_model(wish: Option<&str>) -> Check {
    match wish {
        Some(wish) => MODEL.warning(
            format!("none can be used; the default of the settings, {wish}, has no key or is not known"),
            "Give its provider a key, or change defaultProvider and defaultModel in settings.json.",
        ),
        None => MODEL.warning(
            "none can be used: prompts fail, and `agentctl prompt` plays a demo",
            "As soon as a provider has a key, its default model is used.",
        ),
    }
}

fn name(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

#[cfg(test)]
mod tests {
    use agentd_auth::CommandCache;
    use agentd_protocol::doctor::CheckStatus::{self, *};

    use super::*;
    use crate::admin::Context;

    fn model(settings: &str) -> (CheckStatus, String) {
        let folder = tempfile::tempdir().unwrap();
        let provider = r#"{"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions","apiKey":"none","models":[{"id":"m"},{"id":"n"}]}"#;
        std::fs::write(folder.path().join("models.json"), format!(r#"{{"providers":{{"p":{provider}}}}}"#))
            .unwrap();
        std::fs::write(folder.path().join("settings.json"), settings).unwrap();
        let check = default_model(&found(folder.path()));
        (check.status, check.detail)
    }

    fn found(agent_dir: &Path) -> Found {
        let context = Context {
            environment: [("AGENTD_DIR", agent_dir)].into_iter().collect(),
            cwd: agent_dir.join("cwd"),
            compat: false,
            key_commands: CommandCache::default(),
        };
        Found::read(&context).unwrap()
    }

    #[test]
    fn the_choice_and_why() {
        let check = |settings: &str, status: CheckStatus, says: &str| {
            let (found, detail) = model(settings);
            assert!(found == status && detail.starts_with(says), "{settings}: {found:?} {detail}");
        };
        check("{}", Ok, "p/m (the first that a key is there for), thinking off");
        check(r#"{"defaultProvider":"p","defaultModel":"n"}"#, Ok, "p/n (the default of the settings)");
        check(r#"{"enabledModels":["p/n"]}"#, Ok, "p/n (the first of enabledModels in the settings)");
        check(
            r#"{"defaultProvider":"p","defaultModel":"gone"}"#,
            Warning,
            "p/m, since the default of the settings, p/gone, cannot be used",
        );
    }

    #[test]
    fn without_any_model() {
        let folder = tempfile::tempdir().unwrap();
        let check = default_model(&found(folder.path()));
        assert_eq!((check.status, &check.detail[..20]), (Warning, "none can be used: pr"));
        std::fs::write(folder.path().join("settings.json"), r#"{"defaultProvider":"x","defaultModel":"y"}"#)
            .unwrap();
        let check = default_model(&found(folder.path()));
        assert!(check.detail.contains("the default of the settings, x/y, has no key"), "{check:?}");
    }

    #[test]
    fn the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let check = |says: &str| {
            let check = file(&path, &found(folder.path()).registry);
            assert!(check.detail.contains(says) && !check.detail.contains("hush"), "{check:?}");
            check.status
        };
        assert_eq!(check("only built-in models"), Ok);
        std::fs::write(
            &path,
            r#"{"providers":{"p":{"baseUrl":"http://h","api":"a","models":[{"id":"m"}]}}}"#,
        )
        .unwrap();
        assert_eq!(check("1 model, 1 provider"), Ok);
        std::fs::write(&path, r#"{"providers":{"p":{"apiKey":"hush","models":[{"id":5}]}}}"#).unwrap();
        assert_eq!(check("Invalid models.json schema: "), Problem);
    }
}
