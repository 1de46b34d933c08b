//! The model and the thinking level that a session starts with.

use std::sync::Arc;

use agentd_protocol::{
    model::{Model, ThinkingLevel},
    settings::Settings,
};

use super::{DefaultModel, ReferenceError, ScopedModel, UsableModels, default_model, resolve_reference};

/// The inputs of the choice.
#[derive(Debug, Clone, Copy)]
pub struct StartupRequest<'a> {
    /// `--provider`.
    pub provider: Option<&'a str>,
    /// `--model`.
    pub model: Option<&'a str>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// The resolved scope: `--models`, else the setting `enabledModels`.
    pub scope: &'a [ScopedModel],
    /// For an existing session: what its file says. `None` for a new one.
    pub session: Option<&'a RestoredChoice>,
    /// The settings.
    pub settings: &'a Settings,
}

/// The model and level that an existing session used last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoredChoice {
    /// Provider and id of the model.
    pub model: Option<(String, String)>,
    /// The level.
    pub level: Option<ThinkingLevel>,
}

/// The choice.
#[derive(Debug, Clone, PartialEq)]
pub struct StartupChoice {
    /// The model; [`Model::placeholder`] when none can be used.
    pub model: Arc<Model>,
    /// The level, one of the model's.
    pub level: ThinkingLevel,
    /// True if the command line asked for a level.
    pub level_is_asked: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Chooses the first of these: `--model`; for a new session the default of the settings if it is in the scope, else the first
/// model of the scope; the model that an existing session used; the default of the settings; the default model of the first
/// provider with credentials that has it; the first available model; the placeholder.
///
/// # Errors
/// [`ReferenceError`] when `--model` or `--provider` cannot be resolved.
pub fn choose_startup(
    usable_models: &UsableModels<'_>,
    request: &StartupRequest<'_>,
) -> Result<StartupChoice, ReferenceError> {
    let mut warnings = Vec::new();
    let (model, pinned) = match (request.model, request.provider) {
        (Some(text), provider) => {
            let mut resolved = resolve_reference(usable_models, provider, text)?;
            if resolved.warning.is_some() && request.thinking.is_some_and(|level| level != ThinkingLevel::Off)
            {
                // Only the provider knows this id: who asks for a level knows that there are some.
                Arc::make_mut(&mut resolved.model).reasoning = true;
            }
            warnings.extend(resolved.warning);
            (resolved.model, resolved.level)
        }
        (None, Some(provider)) => return Err(ReferenceError::ProviderAlone(provider.to_owned())),
        (None, None) => unasked(usable_models, request, &mut warnings),
    };
    let asked = request.thinking.or(pinned);
    let wish = asked
        .or_else(|| request.session.and_then(|session| session.level))
        .unwrap_or_else(|| configured_level(request.settings, &model).unwrap_or(ThinkingLevel::Medium));
    let level = model.clamp_thinking(Some(wish));
    Ok(StartupChoice { model, level, level_is_asked: asked.is_some(), warnings })
}

/// The level after `set_model` or `cycle_model`: that of the scope, of the settings for this model, of the settings for
/// all, the current one; what the model has of it.
#[must_use]
pub fn level_after_switch(
    model: &Model,
    pinned: Option<ThinkingLevel>,
    settings: &Settings,
    current: ThinkingLevel,
) -> ThinkingLevel {
    let wish = pinned.or_else(|| configured_level(settings, model)).unwrap_or(current);
    model.clamp_thinking(Some(wish))
}

fn configured_level(settings: &Settings, model: &Model) -> Option<ThinkingLevel> {
    let name = format!("{}/{}", model.provider, model.id);
    let own = settings.model_thinking_levels.as_ref().and_then(|levels| levels.get(&name)).copied();
    own.or(settings.default_thinking_level)
}

/// The model when the command line names none, and the level that the scope pins with it.
fn unasked(
    usable_models: &UsableModels<'_>,
    request: &StartupRequest<'_>,
    warnings: &mut Vec<String>,
) -> (Arc<Model>, Option<ThinkingLevel>) {
    let DefaultModel { name: default, .. } = default_model(usable_models, request.settings);
    let default = default.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str()));
    if request.session.is_none()
        && let Some(scoped) = from_scope(request.scope, default)
    {
        return (Arc::clone(&scoped.model), scoped.level);
    }
    let recorded = request.session.and_then(|session| session.model.as_ref());
    let restored = recorded.and_then(|(provider, id)| usable_models.find_available(provider, id));
    let lost = recorded.filter(|_| restored.is_none());
    let model = restored
        .or_else(|| default.and_then(|(provider, id)| usable_models.find_available(provider, id)))
        .or_else(|| {
            usable_models
                .registry
                .defaults()
                .find_map(|(provider, id)| usable_models.find_available(provider, id))
        })
        .or_else(|| usable_models.first_available())
        .unwrap_or_else(|| Arc::new(Model::placeholder()));
    if let Some((provider, id)) = lost {
        warnings.push(if model.is_placeholder() {
            format!("the session's model {provider}/{id} cannot be used, and no other is configured")
        } else {
            format!(
                "the session's model {provider}/{id} cannot be used; it goes on with {}/{}",
                model.provider, model.id
            )
        });
    }
    (model, None)
}

fn from_scope<'a>(scope: &'a [ScopedModel], default: Option<(&str, &str)>) -> Option<&'a ScopedModel> {
    let is_default =
        |scoped: &&ScopedModel| default == Some((scoped.model.provider.as_str(), scoped.model.id.as_str()));
    scope.iter().find(is_default).or_else(|| scope.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{
        ModelRegistry, resolve_scope,
        testing::{TestModels, full_id, model},
    };

    const MODELS: &[&str] = &["z/first", "a/one!", "b/two!", "openai/gpt-6.1-sol", "noauth/m"];
    const AUTH: &[&str] = &["z", "a", "b", "demo"];

    #[derive(Default)]
    struct Case {
        models: Option<&'static [&'static str]>,
        auth: Option<&'static [&'static str]>,
        model: Option<&'static str>,
        provider: Option<&'static str>,
        thinking: Option<ThinkingLevel>,
        scope: &'static [&'static str],
        session: Option<(Option<&'static str>, Option<ThinkingLevel>)>,
        settings: &'static str,
    }

    impl Case {
        fn choose(&self) -> Result<(String, &'static str, usize), String> {
            let usable_models = TestModels::new(self.models.unwrap_or(MODELS), self.auth.unwrap_or(AUTH));
            let usable_models = usable_models.offer();
            let settings = if self.settings.is_empty() { "{}" } else { self.settings };
            let settings: Settings = serde_json::from_str(settings).unwrap();
            let session = self.session.map(|(model, level)| RestoredChoice {
                model: model.map(|text| text.split_once('/').map(|(a, b)| (a.into(), b.into())).unwrap()),
                level,
            });
            let startup = choose_startup(
                &usable_models,
                &StartupRequest {
                    provider: self.provider,
                    model: self.model,
                    thinking: self.thinking,
                    scope: &resolve_scope(&usable_models, self.scope).models,
                    session: session.as_ref(),
                    settings: &settings,
                },
            );
            let startup = startup.map_err(|error| error.to_string())?;
            Ok((full_id(&startup.model), startup.level.as_str(), startup.warnings.len()))
        }

        fn check(self, model: &str, level: &str) {
            assert_eq!(
                self.choose(),
                Ok((model.to_owned(), level, 0)).map(|(m, l, w)| (m, static_level(l), w))
            );
        }
    }

    fn static_level(name: &str) -> &'static str {
        ThinkingLevel::from_name(name).unwrap().as_str()
    }

    #[test]
    fn the_order_of_models() {
        let settings = r#"{"defaultProvider":"b","defaultModel":"two"}"#;
        Case { model: Some("one"), settings, scope: &["b/*"], ..Case::default() }.check("a/one", "medium");
        Case { model: Some("one"), provider: Some("a"), ..Case::default() }.check("a/one", "medium");
        Case { scope: &["a/*", "b/*"], settings, ..Case::default() }.check("b/two", "medium");
        Case { scope: &["a/*"], settings, ..Case::default() }.check("a/one", "medium");
        Case { settings, ..Case::default() }.check("b/two", "medium");
        for settings in [r#"{"defaultModel":"b/two"}"#, r#"{"defaultProvider":"b","defaultModel":"b/two"}"#] {
            Case { settings, ..Case::default() }.check("b/two", "medium");
            Case { scope: &["a/*", "b/*"], settings, ..Case::default() }.check("b/two", "medium");
        }
        Case { session: Some((Some("a/one"), None)), settings, scope: &["b/*"], ..Case::default() }
            .check("a/one", "medium");
        Case { session: Some((None, None)), settings, ..Case::default() }.check("b/two", "medium");
        Case { session: Some((Some("demo/demo"), None)), settings, ..Case::default() }
            .check("demo/demo", "off");
        let lost = r#"{"defaultProvider":"noauth","defaultModel":"m"}"#;
        Case { settings: lost, ..Case::default() }.check("z/first", "off");
        Case { auth: Some(&["z", "openai"]), ..Case::default() }.check("openai/gpt-6.1-sol", "off");
        Case { auth: Some(&["demo"]), ..Case::default() }.check("unknown/unknown", "off");
        Case { models: Some(&[]), ..Case::default() }.check("unknown/unknown", "off");
    }

    #[test]
    fn a_session_whose_model_is_gone_goes_on_with_a_warning() {
        let session = Some((Some("noauth/m"), None));
        assert_eq!(Case { session, ..Case::default() }.choose(), Ok(("z/first".into(), "off", 1)));
        let nothing = Case { session, models: Some(&[]), ..Case::default() };
        assert_eq!(nothing.choose(), Ok(("unknown/unknown".into(), "off", 1)));
    }

    #[test]
    fn the_order_of_levels() {
        use ThinkingLevel::{High, Low, Minimal};
        let settings = r#"{"defaultThinkingLevel":"low","modelThinkingLevels":{"b/two":"high"}}"#;
        let one = Some("one");
        Case { model: Some("one:high"), thinking: Some(Minimal), ..Case::default() }
            .check("a/one", "minimal");
        Case { model: Some("one:high"), settings, session: Some((None, Some(Low))), ..Case::default() }
            .check("a/one", "high");
        Case { scope: &["one:high"], settings, ..Case::default() }.check("a/one", "high");
        Case { model: one, session: Some((None, Some(High))), settings, ..Case::default() }
            .check("a/one", "high");
        Case { model: Some("b/two"), settings, ..Case::default() }.check("b/two", "high");
        Case { model: one, settings, ..Case::default() }.check("a/one", "low");
        Case { model: one, ..Case::default() }.check("a/one", "medium");
        Case { model: Some("one:max"), ..Case::default() }.check("a/one", "high");
        Case { model: Some("first:high"), ..Case::default() }.check("z/first", "off");
    }

    /// The start of a user with these keys and nothing else, and the providers that were looked at for it.
    fn first_start(auth: &[&str]) -> (String, Vec<&'static str>) {
        let registry = ModelRegistry::builtin();
        let has_auth = |provider: &str| auth.contains(&provider);
        let apis = ["anthropic-messages", "openai-completions", "openai-responses"];
        let usable_models =
            UsableModels { registry: &registry, apis: &apis, has_auth: &has_auth, plan: &|_| None };
        let settings = Settings::default();
        let request = StartupRequest {
            provider: None,
            model: None,
            thinking: None,
            scope: &[],
            session: None,
            settings: &settings,
        };
        let start = choose_startup(&usable_models, &request).unwrap();
        assert_eq!(start.warnings, [""; 0]);
        (full_id(&start.model), registry.unpacked_providers().map(|id| &*id.to_owned().leak()).collect())
    }

    #[test]
    fn a_key_is_enough() {
        let start = |model: &str, looked_at: &[&'static str]| (model.to_owned(), looked_at.to_vec());
        assert_eq!(first_start(&[]), start("unknown/unknown", &[]));
        assert_eq!(first_start(&["openai"]), start("openai/gpt-6.1-sol", &["openai"]));
        assert_eq!(first_start(&["anthropic"]), start("anthropic/claude-opus-5-5", &["anthropic"]));
        assert_eq!(first_start(&["openai", "anthropic"]), start("anthropic/claude-opus-5-5", &["anthropic"]));
        // A provider whose API is not spoken is no choice, and not even looked at.
        assert_eq!(first_start(&["google"]), start("unknown/unknown", &[]));
        assert_eq!(first_start(&["google", "groq"]).0, "groq/openai/gpt-oss-120b");
    }

    #[test]
    fn errors_of_flags() {
        let error = Case { model: Some("nothing"), ..Case::default() }.choose().unwrap_err();
        assert_eq!(error, "Model \"nothing\" not found. Use --list-models to see available models.");
        let error = Case { provider: Some("a"), ..Case::default() }.choose().unwrap_err();
        assert_eq!(error, "--provider requires --model (for example: --provider a --model <pattern>)");
    }

    #[test]
    fn levels_after_a_switch() {
        use ThinkingLevel::{High, Low, Max, Medium, Off};
        let settings: Settings =
            serde_json::from_str(r#"{"defaultThinkingLevel":"low","modelThinkingLevels":{"b/two":"high"}}"#)
                .unwrap();
        let none = Settings::default();
        assert_eq!(level_after_switch(&model("a", "one!"), Some(Max), &settings, Off), High);
        assert_eq!(level_after_switch(&model("b", "two!"), None, &settings, Off), High);
        assert_eq!(level_after_switch(&model("a", "one!"), None, &settings, Off), Low);
        assert_eq!(level_after_switch(&model("a", "one!"), None, &none, Medium), Medium);
        assert_eq!(level_after_switch(&model("a", "one"), None, &none, Medium), Off);
    }
}
