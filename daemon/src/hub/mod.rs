//! What the connections of a daemon share: its sessions, and its end.

mod board;
pub mod ceilings;
mod closing;
mod give_back;
mod known;
pub mod list;
mod meant;
mod memory;
mod numbers;
mod registry;
mod relief;
mod shutdown;
mod traffic;
mod turnstile;

pub use board::{Board, News, Watcher};
pub use ceilings::Ceilings;
pub use give_back::share_one_arena;
pub use known::{Awake, ClientCount, Expected, Known, Opener};
pub use meant::Meant;
pub use registry::{Foundation, Joined, Registry};
pub use shutdown::{Ending, ShutdownSwitch};
pub use traffic::{ConnectionCount, Traffic};
pub use turnstile::Turnstile;
