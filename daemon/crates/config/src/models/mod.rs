//! Models: which there are, which one a text means, which one a session starts with.
//!
//! The build packs the catalogue of built-in models: a table of providers, which is data of the program, and each provider's models,
//! compressed. A start unpacks nothing; a provider's models are unpacked when they are first looked at, and dropped when nothing holds
//! them. `models.json` lies over the catalogue, provider by provider and model by model. [`UsableModels`] is the registry restricted to the
//! APIs of this build and the keys of the user; every choice of a model goes through it.

mod catalogue;
mod default_model;
mod demo;
mod extended;
mod file;
mod file_provider;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod layers;
mod lookup;
mod merge;
mod names;
mod provider_config;
mod reference;
mod registry;
mod scope;
mod shared;
mod similar;
mod startup;
mod usable_models;
mod without_effect;

pub use catalogue::{CatalogueError, CatalogueFault, MAX_CATALOGUE_BYTES, reset_catalogue, update_catalogue};
pub use default_model::{DefaultModel, DefaultProblem, default_model};
pub use demo::{DEMO_MODEL, DEMO_PROVIDER};
pub use layers::{ProviderLayer, VIRTUAL_API, virtual_model};
pub use lookup::ResolvedModel;
pub use names::ReferenceError;
pub(crate) use names::{MAX_SLIPS, slips};
pub use provider_config::ProviderConfig;
pub use reference::resolve_reference;
pub use registry::ModelRegistry;
pub use scope::{CycledModel, cycle};
pub use scope::{GlobError, ModelGlob, is_glob};
pub use scope::{ModelScope, ScopedModel, resolve_fallbacks, resolve_scope};
pub use shared::ModelsStamp;
pub use shared::SharedModels;
pub use startup::{RestoredChoice, StartupChoice, StartupRequest, choose_startup, level_after_switch};
pub use usable_models::UsableModels;
pub use without_effect::without_effect;

#[cfg(test)]
mod testing;
