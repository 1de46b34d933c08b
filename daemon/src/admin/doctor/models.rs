//! The catalogue, `models.json`, and the model that a session starts with.

use std::path::Path;

use agentd_config::models::{
    ModelRegistry, StartupRequest, UsableModels, choose_startup, default_model as model_of_settings,
    resolve_scope, without_effect,
};
use agentd_protocol::{
    doctor::Check,
    model::Model,
    resources::{Diagnostic, DiagnosticLevel},
};

use super::check::{CheckName, LoadedSetup, NO_MODEL, counted, first_aid, show};

const FILE: CheckName = CheckName("models_file", "models.json");
const CATALOGUE: CheckName = CheckName("models_catalogue", "model catalogue");
const MODEL: CheckName = CheckName("model", "model");

const CHANGE_DEFAULT: &str = "Change defaultProvider and defaultModel in settings.json (`agentctl models` lists what can be \
                              used), or remove them.";

/// The catalogue in use, and its age.
pub(super) fn catalogue(registry: &ModelRegistry) -> Check {
    if let Some(problem) = registry.catalogue_problem() {
        let detail = Diagnostic { hint: None, ..problem.clone() }.to_string();
        let advice = "Until one of these the built-in catalogue is used: `agentctl models --update FILE` stores another one, \
                      `agentctl models --reset-catalogue` removes this one.";
        return CATALOGUE.problem(detail, advice);
    }
    CATALOGUE.ok(registry.catalogue().to_string())
}

/// One check with the numbers of models and providers in the file, and one for each part without effect.
pub(super) fn file(path: &Path, registry: &ModelRegistry) -> Vec<Check> {
    if let Some(problem) = registry.diagnostic() {
        let read = agentd_config::read_json(path);
        let aid = read.as_ref().err().map_or("Repair the file or remove it.", first_aid);
        let detail = Diagnostic { hint: None, ..problem.clone() }.to_string();
        return vec![FILE.problem(detail, format!("{aid} Until then none of its models can be used."))];
    }
    let document = match agentd_config::read_json(path) {
        Ok(None) => return vec![FILE.ok(format!("no {}: only built-in models", show(path)))],
        Ok(Some(document)) => document,
        // The file changed since the registry read it.
        Err(error) => return vec![FILE.problem(error.to_string(), first_aid(&error))],
    };
    let providers = document.value.get("providers").and_then(serde_json::Value::as_object);
    let models = providers.into_iter().flatten().filter_map(|(_, entry)| entry.get("models")?.as_array());
    let models = counted(models.map(Vec::len).sum(), "model");
    let count = counted(providers.map_or(0, serde_json::Map::len), "provider");
    let mut checks = vec![FILE.ok(format!("{}: {models}, {count}", show(path)))];
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let apis: Vec<&str> = adapters.apis().collect();
    let usable_models = UsableModels { registry, apis: &apis, has_auth: &|_| false, plan: &|_| None };
    let slips = registry.unread().iter().filter(|it| it.level > DiagnosticLevel::Info).cloned();
    checks.extend(slips.chain(without_effect(&usable_models, path)).map(|it| {
        let advice = it.hint.unwrap_or_else(|| "Correct it or remove it.".to_owned());
        FILE.warning(it.message, advice)
    }));
    checks
}

/// The model of a session that started now, and the reason for the choice.
pub(super) fn default_model(found: &LoadedSetup) -> Check {
    let providers = agentd_ai::ProviderRegistry::builtin();
    let apis: Vec<&str> = providers.apis().collect();
    let has_auth = |provider: &str| found.auth.is_configured(provider);
    let plan = |provider: &str| found.auth.available_models(provider);
    let usable_models =
        UsableModels { registry: &found.registry, apis: &apis, has_auth: &has_auth, plan: &plan };
    let settings = &found.settings.settings;
    let scope = resolve_scope(&usable_models, settings.enabled_models.as_deref().unwrap_or_default());
    let request = StartupRequest {
        provider: None,
        model: None,
        thinking: None,
        scope: &scope.models,
        session: None,
        settings,
    };
    let startup = match choose_startup(&usable_models, &request) {
        Ok(startup) => startup,
        Err(error) => return MODEL.problem(error.to_string(), NO_MODEL),
    };
    let model = &*startup.model;
    let wished = model_of_settings(&usable_models, settings);
    let wish = wished.name.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str()));
    let is_wish = wish == Some((model.provider.as_str(), model.id.as_str()));
    let lost = wish.filter(|_| !is_wish && scope.models.is_empty()).map(|(provider, id)| {
        let why = usable_models.why_not(provider, id).map(|why| format!(" {why}")).unwrap_or_default();
        format!("the default of the settings, {provider}/{id}, cannot be used.{why}")
    });
    if let (None, Some(problem)) = (&lost, wished.problem) {
        let chosen = if model.is_placeholder() { "none".to_owned() } else { name(model) };
        let advice = problem.hint.unwrap_or_else(|| CHANGE_DEFAULT.to_owned());
        return MODEL.warning(format!("{chosen}: {}", problem.message), advice);
    }
    match (lost, model.is_placeholder()) {
        (Some(lost), true) => MODEL.warning(format!("none: {lost}"), CHANGE_DEFAULT),
        (Some(lost), false) => MODEL.warning(format!("{}, since {lost}", name(model)), CHANGE_DEFAULT),
        (None, true) => MODEL.warning(
            "none can be used: prompts fail; `agentctl prompt --demo` plays a demo",
            "As soon as a provider has a key, its default model is used.",
        ),
        (None, false) => {
            let why = if is_wish {
                "the default of the settings"
            } else if scope.models.is_empty() {
                "the first that a key is there for"
            } else {
                "the first of enabledModels in the settings"
            };
            MODEL.ok(format!("{} ({why}), thinking {}", name(model), startup.level.as_str()))
        }
    }
}

fn name(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

#[cfg(test)]
mod tests {
    use agentd_auth::AuthServices;
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

    fn found(agent_dir: &Path) -> LoadedSetup {
        let context = Context {
            environment: [("AGENTD_DIR", agent_dir)].into_iter().collect(),
            cwd: agent_dir.join("cwd"),
            compat: false,
            auth_services: AuthServices::default(),
        };
        LoadedSetup::read(&context).unwrap()
    }

    #[test]
    fn the_choice_and_its_reason() {
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
            "p/m, since the default of the settings, p/gone, cannot be used.",
        );
        check(
            r#"{"defaultProvider":"p","defaultModel":"n","enabledModels":["p/*"]}"#,
            Ok,
            "p/n (the default of the settings)",
        );
        check(r#"{"defaultModel":"p/n"}"#, Ok, "p/n (the default of the settings)");
        check(
            r#"{"defaultModel":"n"}"#,
            Warning,
            "p/m: \"defaultModel\": \"n\" names no provider and is not used",
        );
    }

    #[test]
    fn without_any_model() {
        let folder = tempfile::tempdir().unwrap();
        let check = default_model(&found(folder.path()));
        assert_eq!((check.status, &check.detail[..20]), (Warning, "none can be used: pr"));
        let says = |provider: &str, id: &str, says: &str| {
            let settings = format!(r#"{{"defaultProvider":"{provider}","defaultModel":"{id}"}}"#);
            std::fs::write(folder.path().join("settings.json"), settings).unwrap();
            let check = default_model(&found(folder.path()));
            let expected =
                format!("none: the default of the settings, {provider}/{id}, cannot be used.{says}");
            assert_eq!((check.status, check.detail), (Warning, expected));
        };
        says("x", "y", "");
        says("xai", "grok-4.7", " There is no key for xai: `agentctl login xai` stores one.");
        says("openai", "gpt-6.1-soll", " Did you mean \"openai/gpt-6.1-sol\"?");
    }

    #[test]
    fn the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let check = |says: &str| {
            let checks = file(&path, &found(folder.path()).registry);
            let [check] = checks.as_slice() else { panic!("{checks:?}") };
            assert!(check.detail.contains(says) && !check.detail.contains("hush"), "{check:?}");
            check.status
        };
        assert_eq!(check("only built-in models"), Ok);
        std::fs::write(
            &path,
            r#"{"providers":{"p":{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]}}}"#,
        )
        .unwrap();
        assert_eq!(check("1 model, 1 provider"), Ok);
        std::fs::write(&path, r#"{"providers":{"p":{"apiKey":"hush","models":[{"id":5}]}}}"#).unwrap();
        assert_eq!(check("Invalid models.json schema: "), Problem);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(check("no regular file"), Problem);
        let checks = file(&path, &found(folder.path()).registry);
        let advice = checks[0].advice.as_deref().unwrap();
        assert!(advice.starts_with("Make it a file that your user can read, or remove it. "), "{advice}");
    }

    #[test]
    fn a_part_without_effect_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let text = r#"{"providers":{
            "p":{"baseUrl":"http://h","api":"openai-completion","models":[{"id":"m"},{"id":"n"},{"id":"o","api":"morse"}]},
            "openai":{"modelOverrides":{"gpt-6.1-sol":{"name":"x"},"gpt-none":{"name":"x"}}},
            "antropic":{"baseUrl":"http://proxy"},"xai":{"baseUrl":"http://proxy"}}}"#;
        std::fs::write(&path, text).unwrap();
        let checks = file(&path, &found(folder.path()).registry);
        let statuses: Vec<_> = checks.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Ok, Warning, Warning, Warning, Warning]);
        let lost = &checks[1];
        assert_eq!(
            lost.detail,
            "provider antropic: it has no models, and no built-in provider has this name"
        );
        assert_eq!(lost.advice.as_deref(), Some("Did you mean \"anthropic\"? Else add \"models\"."));
        let checks = &checks[1..];
        let adapters = agentd_ai::ProviderRegistry::builtin();
        let apis: Vec<&str> = adapters.apis().filter(|api| *api != "scripted").collect();
        let spoken = format!("which this version of agentd does not; it speaks: {}.", apis.join(", "));
        assert_eq!(
            checks[1].detail,
            format!("provider p: 2 models not offered. Model \"p/m\" speaks openai-completion, {spoken}")
        );
        assert_eq!(
            checks[2].detail,
            format!("provider p: 1 model not offered. Model \"p/o\" speaks morse, {spoken}")
        );
        assert_eq!(
            checks[3].detail,
            "provider openai: modelOverrides changes gpt-none, which is no built-in model"
        );
    }
}
