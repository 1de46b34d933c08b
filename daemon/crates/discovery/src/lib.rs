//! Capability discovery: what the files of agentd and of other coding agents give a session.
//!
//! A *provider* reads the files of one tool (`providers`), such as `.claude` and `~/.claude`, into [`Item`]s. [`DiscoveryCache::scan`] runs all
//! providers, and keeps the result for as long as no file or folder changes that was looked at. [`merge`] decides which items count: of
//! those with one name the first, unless it is switched off or waits for the project's trust. Skills, prompt templates, context files and
//! servers that agentd reads as pi does are found by `agentd-config` and `agentd-mcp`; they are passed in as [`OwnItem`]s.
//!
//! Everything here reads files and blocks, and starts nothing. What is read is bounded. What is wrong with a file is a diagnostic.

mod absences;
mod agents;
mod cache;
mod capabilities;
mod entry_values;
#[cfg(test)]
mod fixtures;
mod hooks;
mod imports;
mod item;
mod merge;
mod place;
mod provider;
mod providers;
mod resources;
mod rules;
mod scan;
mod servers;
mod standing;
mod switches;
#[cfg(test)]
mod testing;
mod texts;

pub use agents::AgentDefinition;
pub use cache::{DiscoveryCache, Snapshot};
pub use capabilities::Capabilities;
pub use hooks::{Hook, HookPhase};
pub use imports::{ImportRules, MAX_IMPORTED_BYTES, expand_imports};
pub use item::{Item, ItemDetail, OwnItem};
pub use merge::merge;
pub use place::DiscoveryPlace;
pub use provider::{AGENTS, AGENTS_MD, CLAUDE_MD, NATIVE, PACKAGES, Provider};
pub use providers::provider_ids;
pub use rules::{Rule, RuleUse};
pub use scan::read_body;
pub use standing::{ListedItem, Standing};
pub use switches::Switches;
