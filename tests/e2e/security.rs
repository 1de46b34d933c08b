//! What docs/security.md promises.

mod clones;
mod completion;
mod environment;
mod files;
mod names;
mod others;
mod source;
