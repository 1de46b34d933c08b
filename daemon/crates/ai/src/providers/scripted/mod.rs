//! The offline model: plays a script, or, without one, shows the agent at work as the built-in demo.
//!
//! The format of scripts is described in `docs/scripted-model.md`.

mod cache;
mod checks;
mod demo;
mod facts;
mod pace;
mod play;
mod provider;
mod script;
mod select;

pub(crate) use provider::Scripted;
