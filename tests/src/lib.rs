//! The harness of the end-to-end tests: the real `agentd` and `agentctl`, a temporary home for each test, a model server
//! that answers as the test says.
//!
//! Everything here waits for something to happen, with a deadline; nothing sleeps. What goes wrong panics with what was
//! seen so far, since tests are the only callers.

// A harness reports by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

pub mod binaries;
pub mod conversation;
pub mod ctl;
pub mod daemon;
pub mod gate;
pub mod home;
pub mod mock_server;
pub mod normalize;
pub mod processes;
pub mod random;
pub mod socket;
pub mod sse;
pub mod terminal;
pub mod transcript;
pub mod usage;
pub mod wires;

use std::time::Duration;

pub use conversation::Conversation;
pub use ctl::Ctl;
pub use daemon::Daemon;
pub use gate::Gate;
pub use home::Home;
pub use mock_server::{MockServer, Reply};
pub use random::Random;
pub use socket::{Service, SocketClient};
pub use terminal::Terminal;

/// How long anything may take before a test fails: long enough for a machine that does much else meanwhile.
pub const DEADLINE: Duration = Duration::from_secs(30);
