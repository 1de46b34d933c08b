//! The laws of models: their files, and the texts that mean one; see `fuzz.rs` of the crate.

use std::{path::Path, sync::OnceLock};

pub(crate) use super::catalogue::fuzz::{catalogues, stored_catalogues};
use super::{
    ModelGlob, UsableModels, catalogue::Catalogue, file, is_glob, registry::ModelRegistry, resolve_reference,
    resolve_scope,
};
use crate::fuzz::{SECRET, check_told, document, keeps_a_secret};

/// Any file gives providers and models, or is refused with the line; no message shows a secret.
pub(crate) fn models_files(input: &[u8]) {
    static BUILTIN: OnceLock<std::sync::Arc<Catalogue>> = OnceLock::new();
    let catalogue = BUILTIN.get_or_init(Catalogue::builtin);
    match file::of(Path::new("x.json"), document(input), catalogue) {
        Ok(file::ReadModelsFile { providers, unread }) => {
            check_told(&unread, input);
            for provider in &providers {
                let told = format!("{provider:?}");
                assert!(!keeps_a_secret(input) || !told.contains(SECRET), "{told}");
                let _ = (provider.has_models(), provider.names_models(), provider.apis().count());
                let patched = provider.patched(&[]);
                for model in patched.known.iter().chain(&patched.added).chain(&provider.own) {
                    assert_eq!(model.provider, provider.config.id);
                    assert!(!model.id.is_empty());
                }
            }
        }
        Err(problem) => {
            check_told(std::slice::from_ref(&problem.diagnostic), input);
            assert!(problem.text.len() < 4096, "{}", problem.text);
            assert!(!keeps_a_secret(input) || !problem.text.contains(SECRET), "{}", problem.text);
        }
    }
}

/// Any text that is taken for a model means one that there is, or nothing, with a reason; a list of such texts means models that
/// there are.
pub(crate) fn model_names(input: &[u8]) {
    static REGISTRY: OnceLock<ModelRegistry> = OnceLock::new();
    let registry = REGISTRY.get_or_init(ModelRegistry::builtin);
    let text = String::from_utf8_lossy(input);
    if is_glob(&text)
        && let Ok(glob) = ModelGlob::new(&text)
    {
        for model in registry.models_of("anthropic").take(3) {
            let _ = glob.fits(model);
        }
    }
    let usable = |provider: &str| matches!(provider, "mistral" | "deepseek");
    let usable_models = UsableModels {
        registry,
        apis: &["mistral-conversations", "openai-completions"],
        has_auth: &usable,
        plan: &|_| None,
    };
    for name in text.lines().take(3) {
        match resolve_reference(&usable_models, None, name) {
            Ok(found) => assert!(
                registry.find(&found.model.provider, &found.model.id).is_some() || !found.model.id.is_empty()
            ),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let names: Vec<&str> = text.lines().take(3).collect();
    let _ = resolve_scope(&usable_models, &names);
}
