//! The interactive client of agentd: a full-screen program over the daemon's socket. Leaving it stops nothing.
//!
//! Built as a state, messages and effects: `app` changes the state, `view` draws it, `runtime` does what is to be done outside, and `link`
//! holds the connection. Everything but the last two is tested without a terminal and without a daemon.

mod app;
mod complete;
mod editing;
mod editor;
mod git;
mod history;
mod link;
mod options;
mod panels;
mod runtime;
mod terminal;
mod text;
mod theme;
mod transcript;
mod view;

pub use self::{
    options::{ChatError, ChatOptions, FirstSession},
    runtime::{ChatEnd, run},
};
