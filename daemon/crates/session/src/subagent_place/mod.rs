//! The place of a session as a subagent of another: what its options say of that, and what it has done and handed in so far.

mod child_state;
mod handed_in;
mod options;
mod parent_agents;
mod spawn_policy;

pub(crate) use child_state::{ChildObserver, ChildState, RecentWork};
pub(crate) use handed_in::{End, HandedIn, Handing, OutputSchema};
pub use options::SubagentOptions;
pub(crate) use options::{ExtensionPart, ParentLink, overridable};
pub(crate) use parent_agents::{MAIN_AGENT, ParentAgents, Sent};
pub(crate) use spawn_policy::SpawnPolicy;
