//! The models that a session goes through: `--models` and the setting `enabledModels`.

use std::sync::Arc;

use agentd_protocol::model::{Model, ThinkingLevel};

use super::{
    ModelGlob, Offer, is_glob,
    lookup::{Lookup, split_level},
};

/// A model of the scope.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level that the pattern pins, not yet clamped.
    pub level: Option<ThinkingLevel>,
}

/// What patterns select.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    /// The models, in the order of the patterns, each once.
    pub models: Vec<ScopedModel>,
    /// A sentence for each pattern that selects nothing or is odd.
    pub warnings: Vec<String>,
}

/// Selects available models by patterns: a reference as in `--model`, or a glob (`*`, `?`, `[`) over `provider/id` and
/// `id`, where `*` does not cross `/`; either with `:level` behind it.
#[must_use]
pub fn resolve_scope(offer: &Offer<'_>, patterns: &[impl AsRef<str>]) -> Scope {
    let mut available = None;
    let mut scope = Scope::default();
    for pattern in
        patterns.iter().map(|pattern| pattern.as_ref().trim()).filter(|pattern| !pattern.is_empty())
    {
        for model in select(offer, &mut available, pattern, &mut scope.warnings) {
            let known = |other: &ScopedModel| Arc::ptr_eq(&other.model, &model.model);
            if !scope.models.iter().any(known) {
                scope.models.push(model);
            }
        }
    }
    scope
}

fn select(
    offer: &Offer<'_>,
    available: &mut Option<Vec<Arc<Model>>>,
    pattern: &str,
    warnings: &mut Vec<String>,
) -> Vec<ScopedModel> {
    if is_glob(pattern) {
        return select_glob(available.get_or_insert_with(|| offer.available()), pattern, warnings);
    }
    let lookup = Lookup::in_usable(offer);
    let mut find = |text: &str| match lookup.with_suffix(None, text) {
        Ok(found) => found.map(|(model, level)| ScopedModel { model, level }),
        Err(error) => {
            warnings.push(format!("--models: {error}"));
            None
        }
    };
    if let Some(found) = find(pattern) {
        return vec![found];
    }
    if let Some((before, level)) = pattern.rsplit_once(':')
        && let Some(found) = find(before)
    {
        warnings.push(format!("--models: \"{level}\" in \"{pattern}\" is no thinking level and is ignored"));
        return vec![found];
    }
    if !warnings.last().is_some_and(|warning| warning.contains(&format!("\"{pattern}\""))) {
        warnings.push(none_match(pattern));
    }
    Vec::new()
}

fn select_glob(available: &[Arc<Model>], pattern: &str, warnings: &mut Vec<String>) -> Vec<ScopedModel> {
    let (text, level) = split_level(pattern).map_or((pattern, None), |(text, level)| (text, Some(level)));
    let glob = match ModelGlob::new(text) {
        Ok(glob) => glob,
        Err(error) => {
            warnings.push(format!("--models: \"{pattern}\" is no valid pattern: {error}"));
            return Vec::new();
        }
    };
    let fits = |model: &&Arc<Model>| glob.fits(model);
    let found: Vec<ScopedModel> =
        available.iter().filter(fits).map(|model| ScopedModel { model: Arc::clone(model), level }).collect();
    if found.is_empty() {
        warnings.push(none_match(pattern));
    }
    found
}

fn none_match(pattern: &str) -> String {
    format!("--models: no model with credentials matches \"{pattern}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::testing::{TestOffer, full_id};

    fn check(patterns: &[&str], expected: &[&str], warnings: &[&str]) {
        let models = ["a/one!", "a/two", "b/two", "b/x/deep", "c/three", "a/tag:7b"];
        let offer = TestOffer::new(&models, &["a", "b"]);
        let scope = resolve_scope(&offer.offer(), patterns);
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
        check(&["three"], &[], &["--models: no model with credentials matches \"three\""]);
        check(&["c/*"], &[], &["--models: no model with credentials matches \"c/*\""]);
        check(
            &["one:huge"],
            &["a/one"],
            &["--models: \"huge\" in \"one:huge\" is no thinking level and is ignored"],
        );
        check(
            &["a/["],
            &[],
            &["--models: \"a/[\" is no valid pattern: unclosed character class; missing ']'"],
        );
        check(&["demo/*"], &[], &["--models: no model with credentials matches \"demo/*\""]);
    }

    #[test]
    fn an_ambiguous_pattern_is_said_once() {
        let scope = resolve_scope(&TestOffer::new(&["a/two", "b/two"], &["a", "b"]).offer(), &["two"]);
        assert!(scope.models.is_empty());
        assert_eq!(scope.warnings.len(), 1);
        assert!(scope.warnings[0].contains("ambiguous"), "{:?}", scope.warnings);
    }
}
