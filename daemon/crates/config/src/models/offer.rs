//! Which of the configured models this build and this user can use.

use std::{fmt, sync::Arc};

use agentd_protocol::model::Model;

use super::ModelRegistry;

/// A registry seen through what can be used: the wire APIs of this build, and the providers with credentials.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The configured models.
    pub registry: &'a ModelRegistry,
    /// The wire APIs that this build speaks; models of others are not offered.
    pub apis: &'a [&'a str],
    /// Whether credentials of a provider are configured. Must be cheap: it is asked often, and without the network.
    pub has_auth: &'a dyn Fn(&str) -> bool,
}

impl Offer<'_> {
    /// The models whose API this build speaks, with credentials or without.
    pub fn known(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.registry.models().iter().filter(|model| self.apis.contains(&model.api.as_str()))
    }

    /// The models that can be used now, in the order of the file.
    #[must_use]
    pub fn available(&self) -> Vec<Arc<Model>> {
        // Providers come in runs; each is asked for once.
        let mut asked: Vec<(&str, bool)> = Vec::new();
        let mut has_auth = |provider| match asked.iter().find(|(name, _)| *name == provider) {
            Some((_, answer)) => *answer,
            None => {
                let answer = (self.has_auth)(provider);
                asked.push((provider, answer));
                answer
            }
        };
        self.known().filter(|model| has_auth(model.provider.as_str())).cloned().collect()
    }

    /// The model with exactly this provider and id, if it can be used now; the demo model too.
    #[must_use]
    pub fn find_available(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.find_known(provider, id).filter(|model| (self.has_auth)(&model.provider))
    }

    /// The model with exactly this provider and id, if this build speaks its API; the demo model too.
    #[must_use]
    pub fn find_known(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.registry.find(provider, id).filter(|model| self.apis.contains(&model.api.as_str()))
    }
}

impl fmt::Debug for Offer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("registry", self.registry)
            .field("apis", &self.apis)
            .finish_non_exhaustive()
    }
}
