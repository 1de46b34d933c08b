//! Which model a text means: `--model`, and patterns of `--models`. Upper and lower case are the same.

use std::sync::Arc;

use agentd_protocol::model::{Model, ThinkingLevel};

use super::{DEMO_MODEL, DEMO_PROVIDER, Offer, defaults};

/// What a text means.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The model.
    pub model: Arc<Model>,
    /// The level of a `:level` suffix, not yet clamped.
    pub level: Option<ThinkingLevel>,
    /// What to tell the user.
    pub warning: Option<String>,
}

/// Why a text means no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Several providers have that model, and nothing prefers one of them.
    #[error(
        "Model \"{text}\" is ambiguous across providers: {}. Several have it and none of them alone is authenticated. \
         Use --provider or provider/model.",
        candidates.join(", ")
    )]
    Ambiguous {
        /// The text.
        text: String,
        /// The models as `provider/id`.
        candidates: Vec<String>,
    },
    /// `--provider` names none.
    #[error("Unknown provider \"{0}\". Use --list-models to see available providers/models.")]
    UnknownProvider(String),
    /// `--provider` without `--model`.
    #[error("--provider requires --model (for example: --provider {0} --model <pattern>)")]
    ProviderAlone(String),
    /// There is nothing like it.
    #[error("Model \"{0}\" not found. Use --list-models to see available models.")]
    NotFound(String),
}

/// Finds the model that `text` means among all that this build can speak to, those with credentials preferred;
/// `provider` restricts the search (`--provider`). A text that fits nothing but names a provider is taken as an id that
/// the provider knows and we do not.
///
/// # Errors
/// [`ReferenceError`]; the message is for the user.
pub fn resolve_reference(
    offer: &Offer<'_>,
    provider: Option<&str>,
    text: &str,
) -> Result<Resolved, ReferenceError> {
    let models: Vec<&Arc<Model>> = offer.known().collect();
    let lookup = Lookup { offer, models: &models };
    let text = text.trim();
    let provider = provider
        .map(|name| lookup.provider(name).ok_or_else(|| ReferenceError::UnknownProvider(name.to_owned())))
        .transpose()?;
    if let Some((model, level)) = lookup.with_suffix(provider, text)? {
        return Ok(Resolved { model, level, warning: None });
    }
    lookup.custom(provider, text).ok_or_else(|| ReferenceError::NotFound(text.to_owned()))
}

/// A search in a fixed list of models.
pub(super) struct Lookup<'a> {
    pub(super) offer: &'a Offer<'a>,
    pub(super) models: &'a [&'a Arc<Model>],
}

type Found = Result<Option<Arc<Model>>, ReferenceError>;

/// A model, and the level of a suffix.
type WithLevel = (Arc<Model>, Option<ThinkingLevel>);

impl<'a> Lookup<'a> {
    /// The text as a whole, else without a valid `:level` behind it.
    pub(super) fn with_suffix(
        &self,
        provider: Option<&str>,
        text: &str,
    ) -> Result<Option<WithLevel>, ReferenceError> {
        if let Some(model) = self.find(provider, text)? {
            return Ok(Some((model, None)));
        }
        let Some((before, level)) = split_level(text) else { return Ok(None) };
        Ok(self.find(provider, before)?.map(|model| (model, Some(level))))
    }

    fn find(&self, provider: Option<&str>, text: &str) -> Found {
        if text.is_empty() {
            return Ok(None);
        }
        match provider {
            Some(provider) => Ok(self.find_in(provider, text)),
            None => self.find_anywhere(text),
        }
    }

    fn find_in(&self, provider: &str, text: &str) -> Option<Arc<Model>> {
        let rest = strip_provider(text, provider).unwrap_or(text);
        let exact = |id: &str| self.of(provider).find(|model| same(&model.id, id)).cloned();
        let demo = || self.demo(provider, rest);
        exact(text).or_else(|| exact(rest)).or_else(demo).or_else(|| self.fuzzy(rest, Some(provider)))
    }

    fn find_anywhere(&self, text: &str) -> Found {
        let prefix = self.prefix(text);
        let named = prefix.and_then(|(provider, rest)| {
            let configured = self.of(provider).find(|model| same(&model.id, rest)).cloned();
            configured.or_else(|| self.demo(provider, rest))
        });
        let others: Vec<&Arc<Model>> =
            self.models.iter().copied().filter(|model| same(&model.id, text)).collect();
        if named.is_some() || !others.is_empty() {
            return self.pick(text, named, &others).map(Some);
        }
        let in_provider = prefix.and_then(|(provider, rest)| self.fuzzy(rest, Some(provider)));
        Ok(in_provider.or_else(|| self.fuzzy(text, None)))
    }

    /// Decides between the model of the named provider and those whose whole id is the text.
    fn pick(
        &self,
        text: &str,
        named: Option<Arc<Model>>,
        others: &[&Arc<Model>],
    ) -> Result<Arc<Model>, ReferenceError> {
        if let (None, [only]) = (&named, others) {
            return Ok(Arc::clone(only));
        }
        if let Some(named) = named.as_ref().filter(|model| self.has_auth(model)) {
            return Ok(Arc::clone(named));
        }
        let mut with_auth = others.iter().filter(|model| self.has_auth(model));
        if let (Some(only), None) = (with_auth.next(), with_auth.next()) {
            return Ok(Arc::clone(only));
        }
        named.ok_or_else(|| ReferenceError::Ambiguous {
            text: text.to_owned(),
            candidates: others.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect(),
        })
    }

    /// The best of the models whose id or name holds the text.
    fn fuzzy(&self, text: &str, provider: Option<&str>) -> Option<Arc<Model>> {
        let text = text.to_lowercase();
        if text.is_empty() {
            return None;
        }
        let holds = |field: &str| field.to_lowercase().contains(&text);
        let fits = |model: &&&Arc<Model>| {
            provider.is_none_or(|provider| same(&model.provider, provider))
                && (holds(&model.id) || holds(&model.name))
        };
        let matches: Vec<&Arc<Model>> = self.models.iter().filter(fits).copied().collect();
        let usable: Vec<&Arc<Model>> = matches.iter().copied().filter(|model| self.has_auth(model)).collect();
        let matches = if usable.is_empty() { matches } else { usable };
        // The last of equal ones would win; the first in the file shall.
        matches.into_iter().rev().max_by_key(|model| (is_alias(&model.id), model.id.to_lowercase())).cloned()
    }

    /// An id that only the provider knows: the provider's default model under another id.
    fn custom(&self, provider: Option<&str>, text: &str) -> Option<Resolved> {
        let (provider, id) = match provider {
            Some(provider) => (provider, strip_provider(text, provider).unwrap_or(text)),
            None => self.prefix(text)?,
        };
        let (id, level) = split_level(id).map_or((id, None), |(id, level)| (id, Some(level)));
        let default = defaults::default_of(provider);
        let base = self
            .of(provider)
            .find(|model| Some(model.id.as_str()) == default)
            .or_else(|| self.of(provider).next())?;
        if id.is_empty() {
            return None;
        }
        let mut model = Model::clone(base);
        model.id = id.to_owned();
        model.name = id.to_owned();
        let warning = format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
        Some(Resolved { model: Arc::new(model), level, warning: Some(warning) })
    }

    /// The known provider with the longest name that the text begins with, and what follows.
    fn prefix<'t>(&self, text: &'t str) -> Option<(&'a str, &'t str)> {
        let named = self.providers().filter_map(|provider| Some((provider, strip_provider(text, provider)?)));
        named.max_by_key(|(provider, _)| provider.len())
    }

    /// A provider by its name.
    fn provider(&self, name: &str) -> Option<&'a str> {
        self.providers().find(|provider| same(provider, name))
    }

    fn providers(&self) -> impl Iterator<Item = &'a str> {
        self.models.iter().map(|model| model.provider.as_str()).chain([DEMO_PROVIDER])
    }

    fn of(&self, provider: &str) -> impl Iterator<Item = &'a Arc<Model>> {
        self.models.iter().copied().filter(move |model| same(&model.provider, provider))
    }

    /// The demo model is in no list: only its full name finds it.
    fn demo(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let asked = same(provider, DEMO_PROVIDER) && same(id, DEMO_MODEL);
        asked.then(|| self.offer.find_known(DEMO_PROVIDER, DEMO_MODEL)).flatten()
    }

    fn has_auth(&self, model: &Model) -> bool {
        (self.offer.has_auth)(&model.provider)
    }
}

/// Splits at the last colon when a level stands behind it.
pub(super) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (before, level) = text.rsplit_once(':')?;
    Some((before, ThinkingLevel::from_name(&level.to_lowercase())?))
}

fn strip_provider<'t>(text: &'t str, provider: &str) -> Option<&'t str> {
    let (name, rest) = text.split_at_checked(provider.len())?;
    if same(name, provider) { rest.strip_prefix('/') } else { None }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// Whether an id names the newest of a family: `-latest`, or not ending in a date (`-20250101`).
fn is_alias(id: &str) -> bool {
    let dated = id
        .rsplit_once('-')
        .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit()));
    id.ends_with("-latest") || !dated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::testing::{TestOffer, full_id};

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
    ) -> Result<Resolved, ReferenceError> {
        resolve_reference(&TestOffer::new(MODELS, auth).offer(), provider, text)
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
        for auth in [&[][..], &["groq", "openrouter"]] {
            let error = resolve(auth, None, "shared").unwrap_err().to_string();
            assert!(
                error.starts_with(
                    "Model \"shared\" is ambiguous across providers: openrouter/shared, groq/shared. "
                ),
                "{error}"
            );
            assert!(error.ends_with("Use --provider or provider/model."), "{error}");
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
        };
        custom(Some("anthropic"), "next", "anthropic/next", "next", None);
        custom(None, "anthropic/next:max", "anthropic/next", "next", Some(ThinkingLevel::Max));
        custom(None, "Anthropic/next:7b", "anthropic/next:7b", "next:7b", None);
    }

    #[test]
    fn nothing_fits() {
        let not_found =
            |text: &str| format!("Model \"{text}\" not found. Use --list-models to see available models.");
        for text in ["nothing", "unknown/thing", "nothing:high", "", "anthropic/", ":minimal"] {
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
    fn the_demo_model_is_found_by_its_full_name_only() {
        check(&[], None, "demo/demo", "demo/demo");
        check(&[], Some("demo"), "demo", "demo/demo");
        check(&[], None, "demo/demo:high", "demo/demo@high");
        for text in ["demo", "dem", "demo/de", "demo/other"] {
            assert!(matches!(resolve(&[], None, text), Err(ReferenceError::NotFound(_))), "{text}");
        }
        assert!(resolve(&[], Some("demo"), "dem").is_err());
    }

    #[test]
    fn models_of_an_api_that_is_not_built_in_are_not_found() {
        let offer = TestOffer::new(MODELS, &[]);
        let offer = Offer { apis: &["other"], ..offer.offer() };
        assert!(matches!(resolve_reference(&offer, None, "gpt-6"), Err(ReferenceError::NotFound(_))));
        assert!(matches!(resolve_reference(&offer, None, "demo/demo"), Err(ReferenceError::NotFound(_))));
    }
}
