//! Parts of `models.json` that can be read and change nothing.

use std::path::Path;

use agentd_protocol::{
    model::Model,
    resources::{Diagnostic, DiagnosticKind},
};

use super::UsableModels;
use crate::{
    json_edit::{JsonStep, line_of},
    json_file::read_json,
};

/// A warning for each part of the file at `path`, which is that of the registry: providers without models, models whose API this
/// build does not speak (one for each provider and API), changes of models that there are not. Reads the file; blocks.
#[must_use]
pub fn without_effect(usable_models: &UsableModels<'_>, path: &Path) -> Vec<Diagnostic> {
    let found =
        without_models(usable_models).chain(unknown_apis(usable_models)).chain(idle_overrides(usable_models));
    let mut found: Vec<(Vec<&str>, String, String)> = found.collect();
    if found.is_empty() {
        return Vec::new();
    }
    let document = read_json(path).ok().flatten();
    let told = |(keys, message, hint): (Vec<&str>, String, String)| {
        let steps: Vec<JsonStep<'_>> = ["providers"].into_iter().chain(keys).map(JsonStep::Key).collect();
        let line = document.as_ref().map(|document| line_of(&document.text, &steps));
        Diagnostic::warning(DiagnosticKind::Models, message).at(path).line(line).hint(hint)
    };
    found.drain(..).map(told).collect()
}

type Found<'a> = (Vec<&'a str>, String, String);

/// Providers that have no model, neither in the file nor built in.
fn without_models<'a>(usable_models: &'a UsableModels<'_>) -> impl Iterator<Item = Found<'a>> {
    let ids = usable_models.registry.configured().map(|provider| provider.id.as_str());
    ids.filter(|id| usable_models.registry.count_by_api(id).is_empty()).map(|id| {
        let message = format!("provider {id}: it has no models, and no built-in provider has this name");
        let meant = usable_models.similar_providers(id).into_iter().find(|meant| meant != id);
        let hint = match meant {
            Some(meant) => format!("Did you mean \"{meant}\"? Else add \"models\"."),
            None => "Add \"models\", or take the provider out.".into(),
        };
        (vec![id], message, hint)
    })
}

/// The models of the file whose API this build does not know, which may be a slip of the pen.
fn unknown_apis<'a>(usable_models: &'a UsableModels<'_>) -> impl Iterator<Item = Found<'a>> {
    let mut silent: Vec<(&Model, usize)> = Vec::new();
    for model in usable_models.registry.of_file().filter(|model| !usable_models.speaks(model)) {
        let same = |other: &Model| other.provider == model.provider && other.api == model.api;
        match silent.iter_mut().find(|(first, _)| same(first)) {
            Some((_, count)) => *count += 1,
            None => silent.push((model, 1)),
        }
    }
    silent.into_iter().filter_map(|(model, count)| {
        let why = usable_models.not_spoken(model)?;
        let models = if count == 1 { "1 model".to_owned() } else { format!("{count} models") };
        let message = format!("provider {}: {models} not offered. {why}", model.provider);
        Some((
            vec![model.provider.as_str()],
            message,
            "Correct \"api\" of the model or of its provider.".into(),
        ))
    })
}

fn idle_overrides<'a>(usable_models: &'a UsableModels<'_>) -> impl Iterator<Item = Found<'a>> {
    usable_models.registry.idle_overrides().into_iter().map(|(provider, id)| {
        let message = format!("provider {provider}: modelOverrides changes {id}, which is no built-in model");
        let hint = format!(
            "Correct the id (`agentctl models {provider}/` lists them), or add the model to \"models\"."
        );
        (vec![provider, "modelOverrides", id], message, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ModelRegistry;

    #[test]
    fn each_part_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        std::fs::write(
            &path,
            "{\"providers\": {\n\"antropic\": {\"baseUrl\": \"u\"},\n\"p\": {\"baseUrl\": \"u\", \"api\": \"morse\", \"models\": [{\"id\": \"m\"}]},\n\
             \"openai\": {\"modelOverrides\": {\n\"gpt-none\": {\"name\": \"x\"}}}}}",
        )
        .unwrap();
        let registry = ModelRegistry::load(&path);
        let usable_models = UsableModels {
            registry: &registry,
            apis: &["openai-completions"],
            has_auth: &|_| false,
            plan: &|_| None,
        };
        let told: Vec<_> = without_effect(&usable_models, &path)
            .into_iter()
            .map(|it| (it.line, it.message, it.hint))
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        for ((line, message, hint), (on, says, advice)) in told.into_iter().zip([
            (2, "provider antropic: it has no models", "\"anthropic\""),
            (3, "provider p: 1 model not offered.", "\"api\""),
            (5, "provider openai: modelOverrides changes gpt-none", "agentctl models openai/"),
        ]) {
            assert!(
                line == Some(on) && message.contains(says) && hint.unwrap().contains(advice),
                "{line:?} {message}"
            );
        }
    }
}
