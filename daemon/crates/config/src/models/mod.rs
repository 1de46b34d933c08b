//! Models: which there are, which one a text means, which one a session starts with.

mod catalogue;
mod cycle;
mod default_model;
mod demo;
mod file;
mod file_provider;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod glob;
mod lookup;
mod merge;
mod names;
mod provider_config;
mod reference;
mod reference_error;
mod registry;
mod scope;
mod shared;
mod similar;
mod stamp;
mod startup;
mod usable_models;
mod without_effect;

pub use catalogue::{CatalogueError, CatalogueFault, MAX_CATALOGUE_BYTES, reset_catalogue, update_catalogue};
pub use cycle::{CycledModel, cycle};
pub use default_model::{DefaultModel, DefaultProblem, default_model};
pub use demo::{DEMO_MODEL, DEMO_PROVIDER};
pub use glob::{GlobError, ModelGlob, is_glob};
pub use lookup::ResolvedModel;
pub(crate) use names::slips;
pub use provider_config::ProviderConfig;
pub use reference::resolve_reference;
pub use reference_error::ReferenceError;
pub use registry::ModelRegistry;
pub use scope::{ModelScope, ScopedModel, resolve_fallbacks, resolve_scope};
pub use shared::SharedModels;
pub use stamp::ModelsStamp;
pub use startup::{RestoredChoice, StartupChoice, StartupRequest, choose_startup, level_after_switch};
pub use usable_models::UsableModels;
pub use without_effect::without_effect;

#[cfg(test)]
mod testing;
