//! `diagnose`: looks at everything that a session needs, and says what to do where something is missing.

mod diagnose;
mod finding;
mod folders;
mod keys;
mod models;
mod processes;
mod program;
mod resources;
mod servers;
mod settings;
mod shell;

pub(crate) use diagnose::diagnose;
