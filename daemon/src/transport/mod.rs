//! Transports: they move lines in and out and never look inside.

mod client_stream;
mod direct_writes;
mod gather;
mod line_budget;
mod listener;
mod output;
mod socket;
mod socket_claim;
mod socket_monitor;
mod standard_stream;
mod stdio;

pub use line_budget::{ClientLineBudget, LineBudget};
pub use listener::{Arrival, Listener};
pub use output::{InProcessClient, Output, in_process_pair};
pub use socket::split;
pub use socket_claim::{ClaimError, SocketClaim};
pub use socket_monitor::SocketMonitor;
pub use stdio::read_stdin;
