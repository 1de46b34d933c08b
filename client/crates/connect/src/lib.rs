//! Ways to the user's daemon: finding its socket, connecting, starting the daemon in the background, and passing the lines of one
//! session through.
//!
//! Shared by `agentctl` and `agentd --stdio --shared`. The crate prints nothing and knows no command line: errors are sentences
//! that both programs print with a prefix of their own.

mod daemon_process;
mod endpoint;
mod error;
mod opening;
mod pass_through;

pub use self::{
    daemon_process::{LaunchOptions, find_agentd},
    endpoint::{Endpoint, ReachedDaemon},
    error::{ConnectError, ConnectErrorKind},
    opening::{OpenedSession, SessionOpening, environment},
    pass_through::{PassThroughError, pass_through, standard_streams},
};
