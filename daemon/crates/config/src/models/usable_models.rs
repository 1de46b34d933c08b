//! The models that this build and this user can use.

use std::{fmt, sync::Arc};

use agentd_protocol::model::Model;

use super::{
    ModelRegistry, ReferenceError,
    demo::{DEMO_API, DEMO_PROVIDER},
    names::did_you_mean,
};

/// A registry seen through what can be used: the wire APIs of this build, and the providers with credentials. Looks only
/// at providers with credentials, unless a function says otherwise.
#[derive(Clone, Copy)]
pub struct UsableModels<'a> {
    /// The models.
    pub registry: &'a ModelRegistry,
    /// The wire APIs that this build speaks; models of others are not offered.
    pub apis: &'a [&'a str],
    /// Tells whether credentials of a provider are configured. Called often, so it must be cheap and use no network.
    pub has_auth: &'a dyn Fn(&str) -> bool,
    /// The models that the account of a provider may use; `None` when the provider does not say. Must be as cheap.
    pub plan: &'a dyn Fn(&str) -> Option<Arc<[String]>>,
}

impl UsableModels<'_> {
    /// Returns whether this build speaks the model's API.
    #[must_use]
    pub fn speaks(&self, model: &Model) -> bool {
        self.apis.contains(&model.api.as_str())
    }

    /// Returns whether the account may use the model, as far as its provider says so.
    #[must_use]
    pub fn is_in_plan(&self, model: &Model) -> bool {
        (self.plan)(&model.provider).is_none_or(|ids| ids.contains(&model.id))
    }

    /// Returns whether the model could be used with a key.
    #[must_use]
    pub fn offers(&self, model: &Model) -> bool {
        self.speaks(model) && self.is_in_plan(model)
    }

    /// The models that can be used now, in the order of the registry.
    #[must_use]
    pub fn available(&self) -> Vec<Arc<Model>> {
        let usable = |provider: &str| self.is_usable(provider);
        self.registry.select(&usable).filter(|model| self.offers(model)).cloned().collect()
    }

    /// The first of [`UsableModels::available`]; looks no further.
    #[must_use]
    pub fn first_available(&self) -> Option<Arc<Model>> {
        let usable = |provider: &str| self.is_usable(provider);
        self.registry.select(&usable).find(|model| self.offers(model)).cloned()
    }

    /// The model with exactly this provider and id, if it can be used now; the demo model too.
    #[must_use]
    pub fn find_available(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let known = (self.has_auth)(provider).then(|| self.find_known(provider, id)).flatten();
        known.filter(|model| self.is_in_plan(model))
    }

    /// The model with exactly this provider and id, with or without credentials, if this build speaks its API; the demo
    /// model too. Looks at this provider.
    #[must_use]
    pub fn find_known(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let may_be = provider == DEMO_PROVIDER || self.registry.may_speak(provider, self.apis);
        may_be.then(|| self.registry.find(provider, id)).flatten().filter(|model| self.speaks(model))
    }

    /// The error for a model whose API this build does not speak; `None` for other models.
    #[must_use]
    pub fn not_spoken(&self, model: &Model) -> Option<ReferenceError> {
        // The test API is nothing to offer.
        let spoken = self.apis.iter().filter(|api| **api != DEMO_API).map(|api| (*api).to_owned());
        (!self.speaks(model)).then(|| ReferenceError::NotSpoken {
            model: format!("{}/{}", model.provider, model.id),
            api: model.api.clone(),
            spoken: spoken.collect(),
        })
    }

    /// The error for a model that is not offered; `None` for one that is.
    #[must_use]
    pub fn not_offered(&self, model: &Model) -> Option<ReferenceError> {
        self.not_spoken(model).or_else(|| self.not_in_plan(model))
    }

    fn not_in_plan(&self, model: &Model) -> Option<ReferenceError> {
        let ids = (self.plan)(&model.provider).filter(|ids| !ids.contains(&model.id))?;
        Some(ReferenceError::NotInPlan {
            model: format!("{}/{}", model.provider, model.id),
            provider: model.provider.clone(),
            plan: ids.to_vec(),
        })
    }

    /// Why a model cannot be used now, or what may have been meant; `None` when nothing is in its way, or there is
    /// nothing to say. Looks at this provider, and at the others where it has no such model.
    #[must_use]
    pub fn why_not(&self, provider: &str, id: &str) -> Option<String> {
        let Some(model) = self.registry.find(provider, id) else {
            let near = self.similar_in(provider, id);
            let near = if near.is_empty() { self.similar(&format!("{provider}/{id}")) } else { near };
            return Some(did_you_mean(&near).trim_start().to_owned()).filter(|question| !question.is_empty());
        };
        if let Some(error) = self.not_offered(&model) {
            return Some(error.to_string());
        }
        let keyless = !(self.has_auth)(provider);
        keyless.then(|| format!("There is no key for {provider}: `agentctl login {provider}` stores one."))
    }

    /// Returns whether a provider has credentials, and models that this build can speak to.
    pub(super) fn is_usable(&self, provider: &str) -> bool {
        (self.has_auth)(provider) && self.registry.may_speak(provider, self.apis)
    }
}

impl fmt::Debug for UsableModels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsableModels").field("apis", &self.apis).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{
        resolve_reference, resolve_scope,
        testing::{TestModels, full_id},
    };

    #[test]
    fn a_plan_limits_what_is_on_offer() {
        let all = TestModels::new(&["a/one", "a/one-more", "b/one-of-b", "c/three"], &["a", "b"]);
        let plan =
            |provider: &str| (provider == "a").then(|| ["one-more".to_owned(), "new".to_owned()].into());
        let usable_models = UsableModels { plan: &plan, ..all.offer() };
        let names: Vec<String> = usable_models.available().iter().map(|model| full_id(model)).collect();
        assert_eq!(names, ["a/one-more", "b/one-of-b"]);
        assert_eq!(
            usable_models.first_available().map(|model| full_id(&model)).as_deref(),
            Some("a/one-more")
        );
        assert!(
            usable_models.find_available("a", "one").is_none()
                && usable_models.find_available("a", "one-more").is_some()
        );
        let said = "Model \"a/one\" is not in the plan of the a account, which has one-more, new. `agentctl login a --force` \
                    reads the plan anew.";
        assert_eq!(usable_models.why_not("a", "one").as_deref(), Some(said));
        for text in ["a/one", "one"] {
            assert_eq!(
                resolve_reference(&usable_models, None, text).unwrap_err().to_string(),
                said,
                "{text}"
            );
        }
        let found = |text: &str| full_id(&resolve_reference(&usable_models, None, text).unwrap().model);
        assert_eq!(found("a/on"), "a/one-more", "what is not in the plan is not meant");
        assert_eq!(found("a/new"), "a/new", "the provider knows it");
        let unknown = resolve_reference(&usable_models, None, "a/odd").unwrap_err().to_string();
        assert!(unknown.starts_with("Model \"a/odd\" is not in the plan"), "{unknown}");
        let scope = resolve_scope(&usable_models, &["a/*"]);
        assert_eq!(
            scope.models.iter().map(|scoped| full_id(&scoped.model)).collect::<Vec<_>>(),
            ["a/one-more"]
        );
        let none = |_: &str| Some(Arc::from([]));
        let usable_models = UsableModels { plan: &none, ..all.offer() };
        assert!(usable_models.available().is_empty());
        assert!(usable_models.why_not("b", "one-of-b").unwrap().contains("which has no models."));
    }
}
