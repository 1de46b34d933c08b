//! agentd as a server of the Model Context Protocol (MCP), by which another agent hands work to ours.
//!
//! [`Server`] is a client of the daemon and the server of one MCP client. It takes lines of both, and gives lines for both: calls of
//! its tools become commands of our own protocol, and events of sessions become progress and results. It does no I/O, waits for nothing and
//! knows no clock, so that it serves a daemon in this process and one behind a socket alike.
//!
//! Two eras of the protocol are spoken, and each request says by itself which one it is of (`versions`): up to 2025-11-25 a
//! client introduces itself once (`initialize`), since 2026-07-28 every request carries what the server has to know.
//!
//! Decisions are pure functions (`versions`, `tools`, `arguments`, `questions`, `results`, `transcript`); the files below `server` keep what is under
//! way.

mod arguments;
mod questions;
mod requests;
mod results;
mod server;
mod tools;
mod transcript;
mod versions;

pub use self::server::{Effects, Server, ServerOptions};
