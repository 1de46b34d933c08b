//! What the connections of a daemon share: its sessions, and its end.

mod closing;
mod connection_stats;
mod event_numbers;
mod evictor;
mod fair_scheduler;
mod heap_trimmer;
mod memory;
pub mod resource_limits;
pub mod session_list;
mod session_lookup;
mod session_registry;
mod session_slot;
mod shutdown;
mod watch_broker;

pub use connection_stats::{ConnectionCount, ConnectionStats};
pub use fair_scheduler::FairScheduler;
pub use heap_trimmer::share_one_arena;
pub use resource_limits::ResourceLimits;
pub use session_lookup::SessionLookup;
pub use session_registry::{AcquiredSession, ServiceInputs, SessionRegistry};
pub use session_slot::{ClientCount, JoinIntent, LoadedGuard, Opener, SessionSlot};
pub use shutdown::{ShutdownRequest, ShutdownSwitch};
pub use watch_broker::{SessionChange, SessionWatcher, WatchBroker};
