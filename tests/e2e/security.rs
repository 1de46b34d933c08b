//! What docs/security.md promises.

mod changed_trust;
mod clones;
mod completion;
mod environment;
mod files;
mod names;
mod opened_files;
mod opened_sessions;
mod others;
mod searches;
mod source;
