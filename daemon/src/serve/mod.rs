//! Serving: the six ways in which the program serves sessions, until an orderly end.

mod acp;
mod bridge;
mod daemon;
mod mcp;
mod one_shot;
mod output_sweeper;
mod relay;
mod retry_locked_open;
mod runtime;
mod stdio;

pub use self::{
    acp::{acp, log_in},
    bridge::bridge,
    daemon::daemon,
    mcp::mcp,
    one_shot::one_shot,
    stdio::stdio,
};
