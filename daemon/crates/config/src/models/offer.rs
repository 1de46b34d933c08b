//! Which of the models this build and this user can use.

use std::{fmt, sync::Arc};

use agentd_protocol::model::Model;

use super::{
    ModelRegistry, ReferenceError,
    demo::{DEMO_API, DEMO_PROVIDER},
    similar::did_you_mean,
};

/// A registry seen through what can be used: the wire APIs of this build, and the providers with credentials. Looks only
/// at providers with credentials, unless a function says otherwise.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The models.
    pub registry: &'a ModelRegistry,
    /// The wire APIs that this build speaks; models of others are not offered.
    pub apis: &'a [&'a str],
    /// Whether credentials of a provider are configured. Must be cheap: it is asked often, and without the network.
    pub has_auth: &'a dyn Fn(&str) -> bool,
}

impl Offer<'_> {
    /// Whether this build speaks the model's API.
    #[must_use]
    pub fn speaks(&self, model: &Model) -> bool {
        self.apis.contains(&model.api.as_str())
    }

    /// The models that can be used now, in the order of the registry.
    #[must_use]
    pub fn available(&self) -> Vec<Arc<Model>> {
        let usable = |provider: &str| self.is_usable(provider);
        self.registry.select(&usable).filter(|model| self.speaks(model)).cloned().collect()
    }

    /// The first of [`Offer::available`]; looks no further.
    #[must_use]
    pub fn first_available(&self) -> Option<Arc<Model>> {
        let usable = |provider: &str| self.is_usable(provider);
        self.registry.select(&usable).find(|model| self.speaks(model)).cloned()
    }

    /// The model with exactly this provider and id, if it can be used now; the demo model too.
    #[must_use]
    pub fn find_available(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        (self.has_auth)(provider).then(|| self.find_known(provider, id)).flatten()
    }

    /// The model with exactly this provider and id, with or without credentials, if this build speaks its API; the demo
    /// model too. Looks at this provider.
    #[must_use]
    pub fn find_known(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let may_be = provider == DEMO_PROVIDER || self.registry.may_speak(provider, self.apis);
        may_be.then(|| self.registry.find(provider, id)).flatten().filter(|model| self.speaks(model))
    }

    /// What to tell a user who wants a model whose API this build does not speak; `None` for one that it does.
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

    /// Why a model cannot be used now, or what may have been meant; `None` when nothing is in its way, or there is
    /// nothing to say. Looks at this provider, and at the others where it has no such model.
    #[must_use]
    pub fn why_not(&self, provider: &str, id: &str) -> Option<String> {
        let Some(model) = self.registry.find(provider, id) else {
            let near = self.similar_in(provider, id);
            let near = if near.is_empty() { self.similar(&format!("{provider}/{id}")) } else { near };
            return Some(did_you_mean(&near).trim_start().to_owned()).filter(|question| !question.is_empty());
        };
        if let Some(error) = self.not_spoken(&model) {
            return Some(error.to_string());
        }
        let keyless = !(self.has_auth)(provider);
        keyless.then(|| format!("There is no key for {provider}: `agentctl login {provider}` stores one."))
    }

    /// Whether a provider has credentials, and models that this build can speak to.
    pub(super) fn is_usable(&self, provider: &str) -> bool {
        (self.has_auth)(provider) && self.registry.may_speak(provider, self.apis)
    }
}

impl fmt::Debug for Offer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer").field("apis", &self.apis).finish_non_exhaustive()
    }
}
