//! The search for the model that a text means.

use std::{collections::BTreeMap, sync::Arc};

use agentd_protocol::model::{Model, ThinkingLevel};

use super::{
    DEMO_MODEL, DEMO_PROVIDER, ReferenceError, UsableModels,
    names::{did_you_mean, is_alias, split_level},
};

/// The model that a text means.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level of a `:level` suffix, not yet clamped.
    pub level: Option<ThinkingLevel>,
    /// A warning for the user.
    pub warning: Option<String>,
}

/// A search in all models, or only in those that can be used.
pub(super) struct Lookup<'a> {
    usable_models: &'a UsableModels<'a>,
    only_usable: bool,
}

type Found = Result<Option<Arc<Model>>, ReferenceError>;

/// A model, and the level of a suffix.
pub(super) type WithLevel = (Arc<Model>, Option<ThinkingLevel>);

impl<'a> Lookup<'a> {
    /// In all models that there are.
    pub(super) fn everywhere(usable_models: &'a UsableModels<'a>) -> Self {
        Self { usable_models, only_usable: false }
    }

    /// In those that can be used now.
    pub(super) fn in_usable(usable_models: &'a UsableModels<'a>) -> Self {
        Self { usable_models, only_usable: true }
    }

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
            Some(provider) => self.find_in(provider, text),
            None => self.find_anywhere(text),
        }
    }

    fn find_in(&self, provider: &str, text: &str) -> Found {
        let rest = strip_provider(text, provider).unwrap_or(text);
        let exact = self.exact(provider, text).or_else(|| self.exact(provider, rest));
        match exact.or_else(|| self.demo(provider, rest)) {
            Some(model) => self.spoken(model).map(Some),
            None => self.fuzzy_in(provider, rest),
        }
    }

    fn find_anywhere(&self, text: &str) -> Found {
        let prefix = self.prefix(text);
        let named = prefix
            .and_then(|(provider, rest)| self.exact(provider, rest).or_else(|| self.demo(provider, rest)));
        if let Some(found) = self.pick(text, named)? {
            return Ok(Some(found));
        }
        if let Some((provider, rest)) = prefix
            && let Some(found) = self.fuzzy_in(provider, rest)?
        {
            return Ok(Some(found));
        }
        self.fuzzy(text)
    }

    /// Decides between the model of the named provider and those whose whole id is the text.
    fn pick(&self, text: &str, named: Option<Arc<Model>>) -> Found {
        if let Some(named) =
            named.as_ref().filter(|model| self.has_auth(model) && self.usable_models.offers(model))
        {
            return Ok(Some(Arc::clone(named)));
        }
        let with_auth = self.with_id(text, self.usable_models.has_auth);
        let with_auth: Vec<_> =
            with_auth.into_iter().filter(|model| self.usable_models.offers(model)).collect();
        if let [only] = with_auth.as_slice() {
            return Ok(Some(Arc::clone(only)));
        }
        if let Some(named) = named {
            return self.spoken(named).map(Some);
        }
        let (spoken, silent) = self.split(self.with_id(text, |_| true));
        match (spoken.as_slice(), silent.into_iter().next()) {
            ([only], _) => Ok(Some(Arc::clone(only))),
            ([], Some(silent)) => self.spoken(silent).map(Some),
            ([], None) => Ok(None),
            (several, _) => Err(ReferenceError::Ambiguous {
                text: text.to_owned(),
                can_use_several: with_auth.len() > 1,
                candidates: several.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect(),
            }),
        }
    }

    /// The best of a provider's models whose id or name holds the text.
    fn fuzzy_in(&self, provider: &str, text: &str) -> Found {
        let text = text.to_lowercase();
        if !self.usable_models.registry.may_hold(provider, &text) {
            return Ok(None);
        }
        let (spoken, silent) = self.split(self.of(provider, |model| holds(model, &text)));
        best(spoken).or_else(|| best(silent)).map(|model| self.spoken(model)).transpose()
    }

    /// The best of all models whose id or name holds the text: of the providers with credentials, else of the maker, else of all.
    fn fuzzy(&self, text: &str) -> Found {
        let text = text.to_lowercase();
        let may_hold = |provider: &str| self.usable_models.registry.may_hold(provider, &text);
        let with_auth = |provider: &str| (self.usable_models.has_auth)(provider) && may_hold(provider);
        let (usable, silent) = self.split(self.collect(with_auth, |model| holds(model, &text)));
        if let Some(found) = best(usable).or_else(|| best(silent)) {
            return self.spoken(found).map(Some);
        }
        let (spoken, silent) = self.split(self.collect(may_hold, |model| holds(model, &text)));
        let of_maker = best(of_maker(&spoken));
        of_maker.or_else(|| best(spoken)).or_else(|| best(silent)).map(|model| self.spoken(model)).transpose()
    }

    /// An id that only the provider knows: the provider's default model under another id.
    pub(super) fn custom(
        &self,
        provider: Option<&str>,
        text: &str,
    ) -> Result<Option<ResolvedModel>, ReferenceError> {
        let named = match provider {
            Some(provider) => Some((provider, strip_provider(text, provider).unwrap_or(text))),
            None => self.prefix(text),
        };
        let Some((provider, id)) = named else { return Ok(None) };
        let (id, level) = split_level(id).map_or((id, None), |(id, level)| (id, Some(level)));
        let (spoken, silent) = self.split(self.of(provider, |_| true));
        let default = self.usable_models.registry.default_of(provider);
        let is_default = |model: &&Arc<Model>| Some(model.id.as_str()) == default;
        let base = spoken.iter().find(is_default).or(spoken.first()).or(silent.first()).cloned();
        let Some(base) = base.filter(|_| !id.is_empty()) else { return Ok(None) };
        // A user who asks for a level knows that the model has some.
        let reasoning = base.reasoning || level.is_some_and(|level| level != ThinkingLevel::Off);
        let model = Model { id: id.to_owned(), name: id.to_owned(), reasoning, ..Model::clone(&base) };
        let model = self.spoken(Arc::new(model))?;
        let warning = format!(
            "Model \"{id}\" not found for provider \"{provider}\". Using custom model id.{}",
            did_you_mean(&self.usable_models.similar_in(provider, id))
        );
        Ok(Some(ResolvedModel { model, level, warning: Some(warning) }))
    }

    /// The known provider with the longest name that the text begins with, and what follows.
    fn prefix<'t>(&self, text: &'t str) -> Option<(&'a str, &'t str)> {
        let named = self.providers().filter_map(|provider| Some((provider, strip_provider(text, provider)?)));
        named.max_by_key(|(provider, _)| provider.len())
    }

    /// A provider by its name.
    pub(super) fn provider(&self, name: &str) -> Option<&'a str> {
        self.providers().find(|provider| same(provider, name))
    }

    fn providers(&self) -> impl Iterator<Item = &'a str> {
        let usable_models = self.usable_models;
        let only_usable = self.only_usable;
        let listed = usable_models
            .registry
            .providers()
            .filter(move |provider| !only_usable || usable_models.is_usable(provider));
        listed.chain([DEMO_PROVIDER])
    }

    /// The models of a provider of [`Lookup::providers`] that fit.
    fn of(&self, provider: &str, fits: impl Fn(&Model) -> bool) -> Vec<Arc<Model>> {
        let in_reach = !self.only_usable || self.usable_models.is_usable(provider);
        let models = in_reach.then(|| self.usable_models.registry.models_of(provider)).into_iter().flatten();
        models
            .filter(|model| fits(model) && (!self.only_usable || self.usable_models.offers(model)))
            .cloned()
            .collect()
    }

    fn exact(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.of(provider, |model| same(&model.id, id)).into_iter().next()
    }

    /// The models in reach that have this id, of providers for which this holds too.
    fn with_id(&self, id: &str, of: impl Fn(&str) -> bool) -> Vec<Arc<Model>> {
        let registry = self.usable_models.registry;
        self.collect(|provider| of(provider) && registry.may_have(provider, id), |model| same(&model.id, id))
    }

    /// The models in reach that have this id, whichever provider they are of.
    pub(super) fn all_with_id(&self, id: &str) -> Vec<Arc<Model>> {
        self.with_id(id, |_| true)
    }

    /// The models in reach that fit, of providers that fit too.
    fn collect(&self, of: impl Fn(&str) -> bool, fits: impl Fn(&Model) -> bool) -> Vec<Arc<Model>> {
        let usable_models = self.usable_models;
        let wanted =
            |provider: &str| of(provider) && (!self.only_usable || usable_models.is_usable(provider));
        let usable = |model: &Model| !self.only_usable || usable_models.offers(model);
        usable_models.registry.select(&wanted).filter(|model| fits(model) && usable(model)).cloned().collect()
    }

    /// Splits the models into offered ones and others.
    fn split(&self, models: Vec<Arc<Model>>) -> (Vec<Arc<Model>>, Vec<Arc<Model>>) {
        models.into_iter().partition(|model| self.usable_models.offers(model))
    }

    /// The model, if it is offered.
    fn spoken(&self, model: Arc<Model>) -> Result<Arc<Model>, ReferenceError> {
        match self.usable_models.not_offered(&model) {
            Some(error) => Err(error),
            None => Ok(model),
        }
    }

    /// The demo model is in no list: only its full name finds it.
    fn demo(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let asked = same(provider, DEMO_PROVIDER) && same(id, DEMO_MODEL);
        asked.then(|| self.usable_models.find_known(DEMO_PROVIDER, DEMO_MODEL)).flatten()
    }

    fn has_auth(&self, model: &Model) -> bool {
        (self.usable_models.has_auth)(&model.provider)
    }
}

/// Aliases before dated ones, then the highest id; of equal ones the first.
fn best(models: Vec<Arc<Model>>) -> Option<Arc<Model>> {
    // The last of equal ones would win.
    models.into_iter().rev().max_by_key(|model| (is_alias(&model.id), model.id.to_lowercase()))
}

/// Those of the models that their maker offers itself, which is where a user without any key gets one. Providers that resell models
/// name the maker: `anthropic/claude-…`, `~openai/gpt-…`. Of several makers that with the most models counts.
fn of_maker(models: &[Arc<Model>]) -> Vec<Arc<Model>> {
    let maker = |model: &Model| {
        let id = model.id.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        id.split_once('/').map(|(maker, _)| maker.to_lowercase())
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for maker in models.iter().filter_map(|model| maker(model)) {
        *counts.entry(maker).or_default() += 1;
    }
    let offers = |maker: &str| models.iter().any(|model| same(&model.provider, maker));
    let named = counts.into_iter().filter(|(maker, _)| offers(maker)).max_by_key(|(_, count)| *count);
    let Some((maker, _)) = named else { return Vec::new() };
    models.iter().filter(|model| same(&model.provider, &maker)).cloned().collect()
}

/// Returns whether id or name holds a text of small letters.
fn holds(model: &Model, text: &str) -> bool {
    let holds = |field: &str| field.to_lowercase().contains(text);
    !text.is_empty() && (holds(&model.id) || holds(&model.name))
}

fn strip_provider<'t>(text: &'t str, provider: &str) -> Option<&'t str> {
    let (name, rest) = text.split_at_checked(provider.len())?;
    if same(name, provider) { rest.strip_prefix('/') } else { None }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}
