//! What translators share. A translator stands between a program that speaks a protocol of others over JSON-RPC (an editor by ACP, an
//! agent by MCP) and a connection of our own protocol: lines in, lines out, no I/O.
//!
//! [`rpc`] reads and writes the messages of JSON-RPC, [`DaemonCalls`] keeps the commands that the daemon has not answered, and [`branch`] reads
//! a session's entries.

mod branch;
mod daemon_calls;
pub mod rpc;
mod words;

pub use self::{
    branch::branch,
    daemon_calls::{Answer, DaemonCalls, DaemonLine, with_hint},
    words::shortened,
};
