//! Ways to the user's daemon: where its socket is, connecting, starting the daemon in the background, and passing the
//! wire of one session through.
//!
//! `agentctl` and `agentd --stdio --shared` share it. It prints nothing and knows no command line: errors are sentences
//! that both print with a prefix of their own.

mod background;
mod endpoint;
mod error;
mod opening;
mod pass_through;
mod program;

pub use self::{
    endpoint::{Endpoint, Launch, Reached},
    error::{ConnectError, Kind},
    opening::{Opened, Opening, environment},
    pass_through::{Broken, pass_through, standard_streams},
    program::find_agentd,
};
