//! Models: which there are, which one a text means, which one a session starts with.

mod cycle;
mod defaults;
mod demo;
mod file;
mod offer;
mod reference;
mod registry;
mod scope;
mod startup;

pub use cycle::{Cycled, cycle};
pub use demo::{DEMO_MODEL, DEMO_PROVIDER};
pub use offer::Offer;
pub use reference::{ReferenceError, Resolved, resolve_reference};
pub use registry::{ModelRegistry, ProviderConfig};
pub use scope::{Scope, ScopedModel, resolve_scope};
pub use startup::{RestoredChoice, Startup, StartupRequest, choose_startup, level_after_switch};

#[cfg(test)]
mod testing;
