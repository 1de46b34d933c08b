//! What docs/security.md promises.

mod agent_directory;
mod changed_trust;
mod clones;
mod commands;
mod completion;
mod context_trust;
mod environment;
mod files;
mod foreign_ledger;
mod names;
mod opened_files;
mod opened_sessions;
mod others;
mod searches;
mod relay;
mod source;
mod trust_reach;
