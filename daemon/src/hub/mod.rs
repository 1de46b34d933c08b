//! What the connections of a daemon share: its sessions, and its end.

mod board;
pub mod ceilings;
mod closing;
mod give_back;
mod known;
pub mod list;
mod memory;
mod numbers;
mod registry;
mod relief;
mod shutdown;
mod traffic;
mod turnstile;

pub use board::{Board, News, Watcher};
pub use ceilings::Ceilings;
pub use known::{Awake, ClientCount, Expected, Known, Opener};
pub use registry::{Foundation, Joined, Meant, Registry};
pub use shutdown::{Ending, ShutdownSwitch};
pub use traffic::{ConnectionCount, Traffic};
pub use turnstile::Turnstile;
