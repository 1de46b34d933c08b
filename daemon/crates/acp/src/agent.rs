//! The agent of one editor: what is under way between the editor and the daemon.

mod calls;
mod events;
mod files;
mod handshake;
#[cfg(test)]
mod laws;
mod opening;
mod others;
mod prompting;
mod questioning;
mod sessions;
mod settings;
mod state;
mod terminals;
mod tools;

pub use self::state::{Agent, AgentOptions, Effects, FileRead};
