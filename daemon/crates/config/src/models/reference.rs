//! Finds the model that a text means: `--model`, and patterns of `--models`. Case does not matter.

use super::{
    ReferenceError, UsableModels,
    lookup::{Lookup, ResolvedModel},
};

/// Finds the model that `text` means among all that there are, those with credentials preferred; `provider` restricts the
/// search (`--provider`). A text that fits nothing but names a provider is taken as an id that the provider knows and we
/// do not. Looks at providers without credentials only where those with credentials do not decide.
///
/// # Errors
/// [`ReferenceError`]; the message is for the user.
pub fn resolve_reference(
    usable_models: &UsableModels<'_>,
    provider: Option<&str>,
    text: &str,
) -> Result<ResolvedModel, ReferenceError> {
    let lookup = Lookup::everywhere(usable_models);
    let text = text.trim();
    let provider = provider
        .map(|name| lookup.provider(name).ok_or_else(|| unknown_provider(usable_models, name)))
        .transpose()?;
    if let Some((model, level)) = lookup.with_suffix(provider, text)? {
        return Ok(ResolvedModel { model, level, warning: None });
    }
    lookup.custom(provider, text)?.ok_or_else(|| not_found(usable_models, text))
}

fn unknown_provider(usable_models: &UsableModels<'_>, name: &str) -> ReferenceError {
    ReferenceError::UnknownProvider { name: name.to_owned(), similar: usable_models.similar_providers(name) }
}

fn not_found(usable_models: &UsableModels<'_>, text: &str) -> ReferenceError {
    let mut similar = usable_models.similar(text);
    if similar.is_empty()
        && let Some((provider, id)) = text.split_once('/')
    {
        let providers = usable_models.similar_providers(provider);
        similar = providers.into_iter().map(|provider| format!("{provider}/{id}")).collect();
        if similar.is_empty() {
            similar = usable_models.similar(id);
        }
    }
    ReferenceError::NotFound { text: text.to_owned(), similar }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::model::ThinkingLevel;

    use super::*;
    use crate::models::{
        ModelRegistry,
        testing::{TestModels, full_id},
    };

    const MODELS: &[&str] = &[
        "anthropic/claude-sonnet-4-20250101",
        "anthropic/claude-sonnet-4-20250601",
        "anthropic/claude-sonnet-latest",
        "anthropic/claude-opus-5!",
        "openai/gpt-6",
        "openai/gpt-6-mini",
        "open/ai-thing",
        "openrouter/openai/gpt-6",
        "openrouter/shared",
        "groq/shared",
        "local/llama:8b",
        "local/qwen3:high",
        "dated/only-20250101",
        "dated/only-20250601",
    ];

    fn resolve(
        auth: &'static [&'static str],
        provider: Option<&str>,
        text: &str,
    ) -> Result<ResolvedModel, ReferenceError> {
        resolve_reference(&TestModels::new(MODELS, auth).offer(), provider, text)
    }

    /// `expected` is `provider/id` with `@level` behind it, where there is one.
    fn check(auth: &'static [&'static str], provider: Option<&str>, text: &str, expected: &str) {
        let resolved = resolve(auth, provider, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let level = resolved.level.map(|level| format!("@{}", level.as_str())).unwrap_or_default();
        assert_eq!(format!("{}{level}", full_id(&resolved.model)), expected, "{text}");
        assert_eq!(resolved.warning, None, "{text}");
    }

    fn check_error(auth: &'static [&'static str], provider: Option<&str>, text: &str, expected: &str) {
        assert_eq!(resolve(auth, provider, text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn exact_ids() {
        check(&[], None, "gpt-6-mini", "openai/gpt-6-mini");
        check(&[], None, " GPT-6-Mini ", "openai/gpt-6-mini");
        check(&[], None, "OpenAI/gpt-6-mini", "openai/gpt-6-mini");
        check(&[], Some("OPENAI"), "gpt-6", "openai/gpt-6");
        check(&[], Some("openai"), "openai/gpt-6", "openai/gpt-6");
        check(&[], Some("openrouter"), "openai/gpt-6", "openrouter/openai/gpt-6");
        check(&[], None, "open/ai-thing", "open/ai-thing");
    }

    #[test]
    fn several_providers() {
        check(&["groq"], None, "shared", "groq/shared");
        check(&["openrouter"], None, "shared", "openrouter/shared");
        check(&["openrouter"], None, "groq/shared", "groq/shared");
        check(&["openai", "openrouter"], None, "openai/gpt-6", "openai/gpt-6");
        check(&["openrouter"], None, "openai/gpt-6", "openrouter/openai/gpt-6");
        check(&[], None, "openai/gpt-6", "openai/gpt-6");
        for (auth, who) in [(&[][..], "No"), (&["groq", "openrouter"], "More than one")] {
            check_error(
                auth,
                None,
                "shared",
                &format!(
                    "Model \"shared\" is ambiguous across providers: openrouter/shared, groq/shared. {who} matching \
                     provider is authenticated. Use --provider or provider/model."
                ),
            );
        }
    }

    #[test]
    fn parts_of_ids_and_names() {
        check(&[], None, "sonnet", "anthropic/claude-sonnet-latest");
        check(&[], None, "sonnet-4", "anthropic/claude-sonnet-4-20250601");
        check(&[], None, "anthropic/opus", "anthropic/claude-opus-5");
        check(&[], Some("anthropic"), "sonnet", "anthropic/claude-sonnet-latest");
        check(&[], None, "name of claude-opus", "anthropic/claude-opus-5");
        check(&[], None, "only", "dated/only-20250601");
        check(&["openrouter"], None, "gpt", "openrouter/openai/gpt-6");
        check(&["openai"], None, "gpt", "openai/gpt-6-mini");
        check(&["groq"], None, "share", "groq/shared");
        check(&[], None, "share", "openrouter/shared");
    }

    #[test]
    fn level_suffixes() {
        check(&[], None, "opus:high", "anthropic/claude-opus-5@high");
        check(&[], None, "anthropic/claude-opus-5:XHIGH", "anthropic/claude-opus-5@xhigh");
        check(&[], None, "llama:8b", "local/llama:8b");
        check(&[], None, "llama:8b:low", "local/llama:8b@low");
        check(&[], None, "qwen3:high", "local/qwen3:high");
        check(&[], Some("local"), "qwen3:high:off", "local/qwen3:high@off");
    }

    #[test]
    fn ids_that_only_the_provider_knows() {
        let custom = |provider, text: &str, expected: &str, id: &str, level| {
            let resolved = resolve(&[], provider, text).unwrap();
            assert_eq!((full_id(&resolved.model).as_str(), resolved.level), (expected, level));
            let (provider, _) = expected.split_once('/').unwrap();
            let warning =
                format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
            assert_eq!(resolved.warning, Some(warning));
            assert_eq!(resolved.model.reasoning, level.is_some(), "{text}");
        };
        custom(Some("anthropic"), "next", "anthropic/next", "next", None);
        custom(None, "anthropic/next:max", "anthropic/next", "next", Some(ThinkingLevel::Max));
        custom(None, "Anthropic/next:7b", "anthropic/next:7b", "next:7b", None);
    }

    #[test]
    fn nothing_fits() {
        let not_found =
            |text: &str| format!("Model \"{text}\" not found. Use --list-models to see available models.");
        for text in ["nothing", "unknown/zzzzz", "nothing:high", "", ":minimal"] {
            check_error(&[], None, text, &not_found(text));
        }
        check_error(
            &[],
            Some("zzz"),
            "gpt-6",
            "Unknown provider \"zzz\". Use --list-models to see available providers/models.",
        );
    }

    #[test]
    fn what_may_have_been_meant_is_proposed() {
        let says = |provider, text: &str, end: &str| {
            let error = resolve(&["openai"], provider, text).unwrap_err().to_string();
            assert!(error.ends_with(end), "{text}: {error}");
        };
        let models = "Use --list-models to see available models. Did you mean ";
        says(None, "gtp-6-mini", &format!("{models}\"openai/gpt-6-mini\"?"));
        says(None, "claude-opsu:high", &format!("{models}\"anthropic/claude-opus-5\"?"));
        says(None, "antropic/claude-opus", &format!("{models}\"anthropic/claude-opus-5\"?"));
        says(None, "antropic/brand-new", &format!("{models}\"anthropic/brand-new\"?"));
        says(None, "unknown/claude-opus-5", &format!("{models}\"anthropic/claude-opus-5\"?"));
        says(
            None,
            "anthropic/",
            &format!(
                "{models}\"anthropic/claude-opus-5\", \"anthropic/claude-sonnet-latest\" or \
            \"anthropic/claude-sonnet-4-20250101\"?"
            ),
        );
        says(None, "nothing", "to see available models.");
        says(Some("opnai"), "gpt-6", "see available providers/models. Did you mean \"openai\"?");
        let warning = resolve(&[], None, "anthropic/claude-opsu").unwrap().warning.unwrap();
        assert_eq!(
            warning,
            "Model \"claude-opsu\" not found for provider \"anthropic\". Using custom model id. Did you mean \
             \"anthropic/claude-opus-5\"?"
        );
    }

    #[test]
    fn the_demo_model_is_found_by_its_full_name_only() {
        check(&[], None, "demo/demo", "demo/demo");
        check(&[], Some("demo"), "demo", "demo/demo");
        check(&[], None, "demo/demo:high", "demo/demo@high");
        for text in ["demo", "dem", "demo/de", "demo/other"] {
            assert!(matches!(resolve(&[], None, text), Err(ReferenceError::NotFound { .. })), "{text}");
        }
        assert!(resolve(&[], Some("demo"), "dem").is_err());
    }

    /// The result for models of each id in `MODELS`, where only those of `local` have an API of this build.
    fn with_silent(auth: &'static [&'static str], text: &str) -> Result<String, String> {
        let models = [
            "silent/gpt-9",
            "silent/opus",
            "local/gpt-9-mini",
            "router/silent/gpt-9",
            "local/shared",
            "silent/shared",
        ];
        let usable_models = TestModels::new(&models, auth).silent("silent");
        resolve_reference(&usable_models.offer(), None, text)
            .map(|resolved| full_id(&resolved.model))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_of_an_api_that_is_not_built_in_says_so() {
        let error = |model: &str| {
            Err(format!(
                "Model \"{model}\" speaks morse, which this version of agentd does not; it speaks: api."
            ))
        };
        for text in ["silent/gpt-9", "silent/gpt-9:high", "silent/opus", "opus", "opu"] {
            let model = if text.contains("gpt") { "silent/gpt-9" } else { "silent/opus" };
            assert_eq!(with_silent(&[], text), error(model), "{text}");
        }
        // An id of a provider without a known model of this build's APIs.
        assert_eq!(with_silent(&[], "silent/next"), error("silent/next"));
        // Somebody else can be spoken to.
        assert_eq!(with_silent(&["router"], "silent/gpt-9"), Ok("router/silent/gpt-9".into()));
        assert_eq!(with_silent(&["silent"], "shared"), Ok("local/shared".into()));
        assert_eq!(with_silent(&[], "gpt"), Ok("router/silent/gpt-9".into()));
        // The user's own provider counts more than one without a key.
        assert_eq!(with_silent(&["silent"], "gpt"), error("silent/gpt-9"));
    }

    #[test]
    fn without_the_api_of_the_demo_there_is_no_demo() {
        let usable_models = TestModels::new(MODELS, &[]);
        let usable_models = UsableModels { apis: &["other"], ..usable_models.offer() };
        assert!(matches!(
            resolve_reference(&usable_models, None, "demo/demo"),
            Err(ReferenceError::NotFound { .. })
        ));
    }

    /// With the real catalogue: what `text` means to a user with these keys, and which providers were looked at.
    fn in_catalogue(auth: &[&str], text: &str) -> (Result<String, String>, Vec<&'static str>) {
        let registry = ModelRegistry::builtin();
        let has_auth = |provider: &str| auth.contains(&provider);
        let apis = ["anthropic-messages", "openai-completions", "openai-responses", "scripted"];
        let usable_models =
            UsableModels { registry: &registry, apis: &apis, has_auth: &has_auth, plan: &|_| None };
        let found = resolve_reference(&usable_models, None, text);
        let found = found.map(|found| full_id(&found.model)).map_err(|error| error.to_string());
        (found, registry.unpacked_providers().map(|id| &*id.to_owned().leak()).collect())
    }

    #[test]
    fn providers_with_credentials_decide_without_a_look_at_the_others() {
        let ok = |id: &str| Ok(id.to_owned());
        assert_eq!(in_catalogue(&["openai"], "gpt-6.1-sol"), (ok("openai/gpt-6.1-sol"), vec!["openai"]));
        assert_eq!(
            in_catalogue(&["anthropic"], "opus-5"),
            (ok("anthropic/claude-opus-5-5"), vec!["anthropic"])
        );
        assert_eq!(in_catalogue(&[], "openai/gpt-6.1-sol").0, ok("openai/gpt-6.1-sol"));
        let both = in_catalogue(&["openai", "anthropic"], "openai/gpt-6.1-sol");
        assert_eq!(both, (ok("openai/gpt-6.1-sol"), vec!["openai"]));
        assert_eq!(in_catalogue(&["openai"], "no-such-thing").1.len(), 42);
        let (silent, _) = in_catalogue(&["openai"], "google/gemini-4-argon");
        let expected = "Model \"google/gemini-4-argon\" speaks google-generative-ai, which this version of agentd does \
                        not; it speaks: anthropic-messages, openai-completions, openai-responses.";
        assert_eq!(silent.unwrap_err(), expected);
        let (ambiguous, _) = in_catalogue(&[], "gpt-6.1-sol");
        let ambiguous = ambiguous.unwrap_err();
        assert!(
            ambiguous.contains("ambiguous across providers: ") && ambiguous.contains("openai/gpt-6.1-sol"),
            "{ambiguous}"
        );
        assert!(!ambiguous.contains("openai-codex/"), "{ambiguous}");
    }

    /// What a newcomer types before there is any key.
    #[test]
    fn without_a_key_a_family_is_that_of_its_maker() {
        for (text, maker) in [
            ("sonnet", "anthropic/"),
            ("opus", "anthropic/"),
            ("claude", "anthropic/"),
            ("haiku", "anthropic/"),
            ("gpt", "openai/"),
            ("deepseek", "deepseek/"),
        ] {
            let (found, _) = in_catalogue(&[], text);
            assert!(found.as_ref().is_ok_and(|id| id.starts_with(maker)), "{text}: {found:?}");
        }
        // A key that is there decides.
        let (found, _) = in_catalogue(&["openrouter"], "sonnet");
        assert!(found.as_ref().is_ok_and(|id| id.starts_with("openrouter/")), "{found:?}");
    }

    #[test]
    fn a_model_of_the_file_or_the_demo_is_found_without_unpacking_anything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let file = r#"{"providers":{"local":{"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions","apiKey":"none",
            "models":[{"id":"tiny:1b"}]},"groq":{"baseUrl":"http://proxy"}}}"#;
        std::fs::write(&path, file).unwrap();
        let registry = ModelRegistry::load(&path);
        let has_auth = |provider: &str| ["local", "openai", "anthropic", "groq"].contains(&provider);
        let apis = ["anthropic-messages", "openai-completions", "openai-responses", "scripted"];
        let usable_models =
            UsableModels { registry: &registry, apis: &apis, has_auth: &has_auth, plan: &|_| None };
        for (text, expected) in [
            ("demo/demo", "demo/demo"),
            ("local/tiny:1b", "local/tiny:1b"),
            ("Local/Tiny:1B:high", "local/tiny:1b"),
            ("tiny:1b", "local/tiny:1b"),
        ] {
            assert_eq!(full_id(&resolve_reference(&usable_models, None, text).unwrap().model), expected);
        }
        assert!(usable_models.find_available("local", "tiny:1b").is_some());
        assert_eq!(registry.unpacked_providers().count(), 0);
    }
}
