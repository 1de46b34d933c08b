//! Serving: the five ways in which the program serves sessions, until an orderly end.

mod acp;
mod bridge;
mod daemon;
mod one_shot;
mod output_sweeper;
mod retry_locked_open;
mod runtime;
mod stdio;

pub use self::{acp::acp, bridge::bridge, daemon::daemon, one_shot::one_shot, stdio::stdio};
