//! The setting `discovery` of an open session.

use std::sync::{PoisonError, RwLock};

use agentd_discovery::Switches;
use agentd_protocol::settings::DiscoverySettings;

/// The setting `discovery`; `set_capability` changes it while the session is open.
#[derive(Debug, Default)]
pub(crate) struct DiscoverySwitches(RwLock<Switches>);

impl DiscoverySwitches {
    /// The switches of a setting.
    pub(crate) fn of(settings: Option<&DiscoverySettings>) -> Self {
        Self(RwLock::new(Switches::of(settings)))
    }

    /// The switches as they are now.
    pub(crate) fn get(&self) -> Switches {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them.
    pub(crate) fn set(&self, switches: Switches) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = switches;
    }
}
