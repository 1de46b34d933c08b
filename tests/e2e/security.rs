//! What docs/security.md promises.

mod environment;
mod files;
mod names;
mod others;
mod source;
