//! The models that a session goes through: `--models` and the setting `enabledModels`.

use std::sync::Arc;

use agentd_protocol::model::{Model, ThinkingLevel};
use globset::{GlobBuilder, GlobMatcher};

use super::{
    ReferenceError, UsableModels,
    lookup::{Lookup, WithLevel},
    names::{did_you_mean, split_level},
};

/// The name of a scope in warnings, whichever of its two sources it has.
const SCOPE: &str = "models to go through";

/// The name of fallback models in warnings.
const FALLBACKS: &str = "fallback models";

/// A model of the scope.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level that the pattern pins, not yet clamped.
    pub level: Option<ThinkingLevel>,
}

/// The models that patterns select.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelScope {
    /// The models, in the order of the patterns, each once.
    pub models: Vec<ScopedModel>,
    /// A sentence for each pattern that selects nothing or is odd.
    pub warnings: Vec<String>,
}

/// Selects available models by patterns: a reference as in `--model`, or a glob (`*`, `?`, `[`) over `provider/id` and
/// `id`, where `*` does not cross `/`; either with `:level` behind it.
#[must_use]
pub fn resolve_scope(usable_models: &UsableModels<'_>, patterns: &[impl AsRef<str>]) -> ModelScope {
    resolve(SCOPE, usable_models, patterns)
}

/// [`resolve_scope`] for the models that replace a failing one (`--fallback-models` and the setting `fallbackModels`).
#[must_use]
pub fn resolve_fallbacks(usable_models: &UsableModels<'_>, patterns: &[impl AsRef<str>]) -> ModelScope {
    resolve(FALLBACKS, usable_models, patterns)
}

fn resolve(purpose: &str, usable_models: &UsableModels<'_>, patterns: &[impl AsRef<str>]) -> ModelScope {
    let mut available = None;
    let mut scope = ModelScope::default();
    for pattern in
        patterns.iter().map(|pattern| pattern.as_ref().trim()).filter(|pattern| !pattern.is_empty())
    {
        for model in select(purpose, usable_models, &mut available, pattern, &mut scope.warnings) {
            let known = |other: &ScopedModel| Arc::ptr_eq(&other.model, &model.model);
            if !scope.models.iter().any(known) {
                scope.models.push(model);
            }
        }
    }
    scope
}

fn select(
    purpose: &str,
    usable_models: &UsableModels<'_>,
    available: &mut Option<Vec<Arc<Model>>>,
    pattern: &str,
    warnings: &mut Vec<String>,
) -> Vec<ScopedModel> {
    if is_glob(pattern) {
        return select_glob(
            purpose,
            usable_models,
            available.get_or_insert_with(|| usable_models.available()),
            pattern,
            warnings,
        );
    }
    match select_one(purpose, usable_models, pattern, warnings) {
        Ok(Some((model, level))) => vec![ScopedModel { model, level }],
        Ok(None) => {
            warnings.push(none_match(purpose, pattern, &why_none(usable_models, pattern)));
            Vec::new()
        }
        Err(ReferenceError::Ambiguous { text, .. }) => {
            // To go through all of them is what the user would see anyway.
            let models = Lookup::in_usable(usable_models).all_with_id(&text);
            let providers: Vec<&str> = models.iter().map(|model| model.provider.as_str()).collect();
            warnings.push(format!(
                "{purpose}: \"{pattern}\" matches several providers: {}. Use provider/id to choose one.",
                providers.join(", ")
            ));
            let level = split_level(pattern).filter(|(before, _)| *before == text).map(|(_, level)| level);
            models.into_iter().map(|model| ScopedModel { model, level }).collect()
        }
        Err(error) => {
            warnings.push(format!("{purpose}: {error}"));
            Vec::new()
        }
    }
}

fn select_one(
    purpose: &str,
    usable_models: &UsableModels<'_>,
    pattern: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<WithLevel>, ReferenceError> {
    let lookup = Lookup::in_usable(usable_models);
    let found = lookup.with_suffix(None, pattern)?;
    let Some((before, level)) = pattern.rsplit_once(':').filter(|_| found.is_none()) else {
        return Ok(found);
    };
    let found = lookup.with_suffix(None, before)?;
    if found.is_some() {
        warnings.push(format!("{purpose}: \"{level}\" in \"{pattern}\" is no thinking level and is ignored"));
    }
    Ok(found)
}

/// The reason why the model that a pattern means among all models cannot be used.
fn why_none(usable_models: &UsableModels<'_>, pattern: &str) -> Option<String> {
    match Lookup::everywhere(usable_models).with_suffix(None, pattern) {
        Ok(Some((model, _))) => usable_models.why_not(&model.provider, &model.id),
        Ok(None) => Some(did_you_mean(&usable_models.similar(pattern)).trim_start().to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn select_glob(
    purpose: &str,
    usable_models: &UsableModels<'_>,
    available: &[Arc<Model>],
    pattern: &str,
    warnings: &mut Vec<String>,
) -> Vec<ScopedModel> {
    let (text, level) = split_level(pattern).map_or((pattern, None), |(text, level)| (text, Some(level)));
    let glob = match ModelGlob::new(text) {
        Ok(glob) => glob,
        Err(error) => {
            warnings.push(format!("{purpose}: \"{pattern}\" is no valid pattern: {error}"));
            return Vec::new();
        }
    };
    let fits = |model: &&Arc<Model>| glob.fits(model);
    let found: Vec<ScopedModel> =
        available.iter().filter(fits).map(|model| ScopedModel { model: Arc::clone(model), level }).collect();
    if found.is_empty() {
        let all = || usable_models.registry.select(&|_| true).filter(fits);
        let meant = all().find(|model| usable_models.offers(model)).or_else(|| all().next());
        let why = meant.and_then(|model| usable_models.why_not(&model.provider, &model.id));
        warnings.push(none_match(purpose, pattern, &why));
    }
    found
}

fn none_match(purpose: &str, pattern: &str, why: &Option<String>) -> String {
    let why = why.as_deref().filter(|why| !why.is_empty()).map(|why| format!(". {why}")).unwrap_or_default();
    format!("{purpose}: no model with credentials matches \"{pattern}\"{why}")
}

/// A glob (`*`, `?`, `[`) over `provider/id` and the id, where `*` does not cross `/` and case does not count.
#[derive(Debug, Clone)]
pub struct ModelGlob(GlobMatcher);

/// The fault in a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GlobError(String);

/// Returns whether a text is meant as a glob.
#[must_use]
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl ModelGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it is none, such as one with a bracket that is not closed.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        let glob = GlobBuilder::new(text).literal_separator(true).case_insensitive(true).build();
        glob.map(|glob| Self(glob.compile_matcher())).map_err(|error| GlobError(error.kind().to_string()))
    }

    /// Returns whether it matches a model.
    #[must_use]
    pub fn fits(&self, model: &Model) -> bool {
        self.0.is_match(&model.id) || self.0.is_match(format!("{}/{}", model.provider, model.id))
    }
}

/// The result of `cycle_model`.
#[derive(Debug, Clone, PartialEq)]
pub struct CycledModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level that the scope pins, not yet clamped.
    pub level: Option<ThinkingLevel>,
    /// True if it comes from the scope rather than from all available models.
    pub is_scoped: bool,
}

/// The next model of the scope (as far as it is still available), or without a scope of all available models; after the
/// last comes the first, and so it does when the current one is not in the list. `None` when there is no other.
#[must_use]
pub fn cycle(
    usable_models: &UsableModels<'_>,
    scope: &[ScopedModel],
    current: &Model,
) -> Option<CycledModel> {
    let is_scoped = !scope.is_empty();
    let list: Vec<ScopedModel> = if is_scoped {
        scope.iter().filter(|scoped| (usable_models.has_auth)(&scoped.model.provider)).cloned().collect()
    } else {
        usable_models.available().into_iter().map(|model| ScopedModel { model, level: None }).collect()
    };
    let place =
        list.iter().position(|item| item.model.provider == current.provider && item.model.id == current.id);
    let next = match place {
        Some(_) if list.len() == 1 => return None,
        Some(place) => (place + 1) % list.len(),
        None => 0,
    };
    let ScopedModel { model, level } = list.into_iter().nth(next)?;
    Some(CycledModel { model, level, is_scoped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::testing::{TestModels, full_id};

    fn check(patterns: &[&str], expected: &[&str], warnings: &[&str]) {
        let models = ["a/one!", "a/two", "b/two", "b/x/deep", "c/three", "a/tag:7b"];
        let usable_models = TestModels::new(&models, &["a", "b"]);
        let scope = resolve_scope(&usable_models.offer(), patterns);
        let got: Vec<String> = scope
            .models
            .iter()
            .map(|scoped| {
                let level = scoped.level.map(|level| format!("@{}", level.as_str())).unwrap_or_default();
                format!("{}{level}", full_id(&scoped.model))
            })
            .collect();
        assert_eq!(got, expected, "{patterns:?}");
        assert_eq!(scope.warnings, warnings, "{patterns:?}");
    }

    #[test]
    fn patterns_select_available_models_in_their_order() {
        check(&["two*", "a/*"], &["a/two", "b/two", "a/one", "a/tag:7b"], &[]);
        check(&["B/TWO", " on "], &["b/two", "a/one"], &[]);
        check(&["a/*:high", "a/one:low"], &["a/one@high", "a/two@high", "a/tag:7b@high"], &[]);
        check(&["one:low", "tag:7b:off"], &["a/one@low", "a/tag:7b@off"], &[]);
        check(&["b/*"], &["b/two"], &[]);
        check(&["b/**"], &["b/two", "b/x/deep"], &[]);
        check(&["[bc]/t??"], &["b/two"], &[]);
        check(&["", "  "], &[], &[]);
    }

    #[test]
    fn what_selects_nothing_is_said() {
        let said = |pattern: &str, expected: &[&str], warning: &str| {
            check(&[pattern], expected, &[&format!("models to go through: {warning}")]);
        };
        let no_key = "There is no key for c: `agentctl login c` stores one.";
        for pattern in ["three", "three:high", "c/*", "c/*:high"] {
            said(pattern, &[], &format!("no model with credentials matches \"{pattern}\". {no_key}"));
        }
        said("demo/*", &[], "no model with credentials matches \"demo/*\"");
        let meant = "Did you mean \"b/x/deep\"?";
        said("x/deeep", &[], &format!("no model with credentials matches \"x/deeep\". {meant}"));
        said("one:huge", &["a/one"], "\"huge\" in \"one:huge\" is no thinking level and is ignored");
        said("a/[", &[], "\"a/[\" is no valid pattern: unclosed character class; missing ']'");
    }

    #[test]
    fn names_of_fallbacks_are_read_in_the_same_way() {
        let usable_models = TestModels::new(&["a/one!", "c/three"], &["a"]);
        let found = resolve_fallbacks(&usable_models.offer(), &["three", "one:high"]);
        let models: Vec<_> = found.models.iter().map(|it| (full_id(&it.model), it.level)).collect();
        assert_eq!(models, [("a/one".to_owned(), Some(ThinkingLevel::High))]);
        assert_eq!(
            found.warnings,
            [
                "fallback models: no model with credentials matches \"three\". There is no key for c: `agentctl login c` stores one."
            ]
        );
    }

    #[test]
    fn models_that_cannot_be_spoken_to_are_said() {
        let usable_models =
            TestModels::new(&["a/one", "silent/two", "silent/three", "c/three"], &["a", "silent"]);
        let usable_models = usable_models.silent("silent");
        let scope = resolve_scope(&usable_models.offer(), &["t*"]);
        assert!(scope.warnings[0].ends_with("There is no key for c: `agentctl login c` stores one."));
        for pattern in ["silent/tw*", "two", "silent/two:high"] {
            let scope = resolve_scope(&usable_models.offer(), &[pattern]);
            assert_eq!(
                scope.warnings,
                [format!(
                    "models to go through: no model with credentials matches \"{pattern}\". Model \"silent/two\" speaks \
                     morse, which this version of agentd does not; it speaks: api."
                )]
            );
        }
    }

    #[test]
    fn of_an_ambiguous_pattern_all_models_are_taken_and_it_is_said() {
        let said = |pattern: &str| {
            format!(
                "models to go through: \"{pattern}\" matches several providers: a, b. Use provider/id to choose one."
            )
        };
        check(&["two", "one"], &["a/two", "b/two", "a/one"], &[&said("two")]);
        check(&["TWO:high"], &["a/two@high", "b/two@high"], &[&said("TWO:high")]);
    }
}

#[cfg(test)]
mod glob_tests {
    use super::*;
    use crate::models::testing::model;

    #[test]
    fn a_star_stays_between_slashes() {
        let fits = |glob: &str, id: &str| ModelGlob::new(glob).unwrap().fits(&model("p", id));
        assert!(fits("GPT-*", "gpt-6") && fits("p/gpt-?", "gpt-6") && fits("*/[g]pt-6", "gpt-6"));
        assert!(!fits("p/*", "deep/model") && fits("p/*/*", "deep/model") && !fits("gpt", "gpt-6"));
        assert_eq!(ModelGlob::new("a[").unwrap_err().to_string(), "unclosed character class; missing ']'");
        assert!(is_glob("a?") && !is_glob("a.b/c:d"));
    }
}

#[cfg(test)]
mod cycle_tests {
    use super::*;
    use crate::models::{
        resolve_scope,
        testing::{TestModels, full_id, model},
    };

    #[test]
    fn goes_round() {
        let all = TestModels::new(&["a/one", "b/two", "c/three"], &["a", "c"]);
        let scope = resolve_scope(&all.offer(), &["three", "one:high"]).models;
        let next = |scope: &[ScopedModel], provider, id| {
            cycle(&all.offer(), scope, &model(provider, id))
                .map(|next| (full_id(&next.model), next.level.is_some(), next.is_scoped))
        };
        let found = |id: &str, pinned, scoped| Some((id.to_owned(), pinned, scoped));
        assert_eq!(next(&[], "a", "one"), found("c/three", false, false));
        assert_eq!(next(&[], "c", "three"), found("a/one", false, false));
        assert_eq!(next(&[], "b", "two"), found("a/one", false, false));
        assert_eq!(next(&scope, "c", "three"), found("a/one", true, true));
        assert_eq!(next(&scope, "x", "y"), found("c/three", false, true));
        assert_eq!(next(&scope[..1], "c", "three"), None);
        assert_eq!(next(&scope[..1], "a", "one"), found("c/three", false, true));
        let nothing = TestModels::new(&["a/one"], &[]);
        assert_eq!(cycle(&nothing.offer(), &[], &Model::placeholder()), None);
        assert_eq!(cycle(&nothing.offer(), &scope, &Model::placeholder()), None);
    }
}
