//! The server of one MCP client: what is under way between the client and the daemon.

mod callers;
mod calls;
mod events;
mod finding;
mod handshake;
#[cfg(test)]
mod laws;
mod looking;
mod prompting;
mod questioning;
mod state;
mod steering;
mod subscriptions;

pub use self::state::{Effects, Server, ServerOptions};
