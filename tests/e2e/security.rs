//! What docs/security.md promises.

mod account;
mod agent_directory;
mod changed_trust;
mod clock;
mod clones;
mod commands;
mod completion;
mod context_trust;
mod descriptors;
mod environment;
mod files;
mod foreign_ledger;
mod names;
mod opened_files;
mod opened_sessions;
mod others;
mod relay;
mod schemas;
mod searches;
mod source;
mod tool_writes;
mod trust_reach;
