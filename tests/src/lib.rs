//! The harness of the end-to-end tests: the real `agentd` and `agentctl`, a temporary home for each test, a model server
//! with scripted answers.
//!
//! Everything here waits for an event with a deadline; nothing sleeps. A failure panics with the lines seen so far.

// A harness reports by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

pub mod apis;
pub mod binaries;
pub mod conversation;
pub mod ctl;
pub mod daemon;
pub mod home;
pub mod mock_server;
pub mod processes;
pub mod random;
pub mod socket;
pub mod sse;
pub mod transcript;
pub mod wait;

pub use conversation::Conversation;
pub use ctl::{Ctl, Terminal};
pub use daemon::Daemon;
pub use home::Home;
pub use mock_server::{MockServer, Reply};
pub use random::Random;
pub use socket::{Service, SocketClient};
pub use wait::{DEADLINE, Gate};
