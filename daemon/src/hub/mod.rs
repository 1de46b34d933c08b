//! What the connections of a daemon share: its sessions, and its end.

pub mod list;
mod registry;
mod shutdown;

pub use registry::{ClientCount, ConnectionCount, Joined, Live, Registry, Traffic};
pub use shutdown::{DEFAULT_DEADLINE, Ending, ShutdownSwitch};
