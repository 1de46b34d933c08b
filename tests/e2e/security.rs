//! What docs/security.md promises.

mod agent_dir;
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
mod relay;
mod searches;
mod tool_writes;
mod source;
mod trust_reach;
