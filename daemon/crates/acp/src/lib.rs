//! The Agent Client Protocol (ACP), version 1: what editors speak to coding agents.
//!
//! [`Agent`] is a client of the daemon and the agent of an editor. It takes lines of both, and gives lines for both: requests of the
//! editor become commands of our own protocol, and events of sessions become updates. It does no I/O, waits for nothing and knows no
//! clock, so that it serves a daemon in this process and one behind a socket alike.
//!
//! Decisions are pure functions (`prompts`, `tool_calls`, `options`, `history`, `questions`, `terminals`, `patch`, `own_message`, `plan`,
//! `server_tools`); the files below
//! `agent` keep what is under way.

mod agent;
mod history;
mod mcp_servers;
mod options;
mod own_message;
mod patch;
mod plan;
mod prompts;
mod questions;
mod requests;
mod server_tools;
mod terminals;
mod tool_calls;
mod updates;

use agentd_translator::rpc;

pub use self::{
    agent::{Agent, AgentOptions, Effects, FileRead},
    terminals::{TerminalAnswer, TerminalCommand, TerminalRequest},
};
