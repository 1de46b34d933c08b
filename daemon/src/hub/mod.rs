//! The state that all connections of a daemon share: sessions, fair scheduler, statistics, and the request to end.

mod daemon_context;
mod evictor;
mod fair_scheduler;
mod heap_trimmer;
pub mod resource_limits;
mod session_lifecycle;
pub mod session_list;
mod session_map;
mod session_registry;
mod session_slot;
mod shutdown;
mod subagent_sessions;
mod watch_broker;

pub use daemon_context::{ConnectionCount, ConnectionStats, DaemonContext};
pub use fair_scheduler::FairScheduler;
pub use heap_trimmer::limit_arenas;
pub use resource_limits::ResourceLimits;
pub use session_registry::{AcquiredSession, ServiceInputs, SessionLookup, SessionRegistry};
pub use session_slot::{ClientCount, JoinIntent, LoadedGuard, Opener, SessionSlot};
pub use shutdown::{ShutdownRequest, ShutdownSwitch};
pub use subagent_sessions::hosting_subagents;
pub use watch_broker::{SessionChange, SessionWatcher, WatchBroker};
