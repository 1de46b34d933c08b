//! What a daemon has for the subagents of all its sessions: who opens their sessions, and how many may work at a time.

mod host;
mod slots;

pub use host::{SubagentHost, SubagentHosting, SubagentSession};
pub(crate) use slots::Slots;
pub use slots::SubagentSlots;
