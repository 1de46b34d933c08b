//! What the connections of a daemon share: its sessions, and its end.

mod board;
mod give_back;
mod known;
pub mod list;
mod registry;
mod shutdown;
mod traffic;

pub use board::{Board, News, Watcher};
pub use known::{Awake, ClientCount, Known};
pub use registry::{Foundation, Joined, Registry};
pub use shutdown::{Ending, ShutdownSwitch};
pub use traffic::{ConnectionCount, Traffic};
