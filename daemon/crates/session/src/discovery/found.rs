//! What was found, with the place.

use std::ops::Deref;

use agentd_discovery::{Capabilities, DiscoveryPlace};

/// The items of a session's files, and where they were looked for.
pub(crate) struct FoundCapabilities {
    pub(crate) place: DiscoveryPlace,
    found: Capabilities,
}

impl FoundCapabilities {
    pub(super) fn new(place: DiscoveryPlace, found: Capabilities) -> Self {
        Self { place, found }
    }
}

impl Deref for FoundCapabilities {
    type Target = Capabilities;

    fn deref(&self) -> &Capabilities {
        &self.found
    }
}
