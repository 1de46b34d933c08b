//! The place of a session as a subagent of another: what its options say of that, and what it has done and handed in so far.

mod child_state;
mod handed_in;
mod options;
mod spawn_policy;

pub(crate) use child_state::{ChildObserver, ChildState};
pub(crate) use handed_in::{End, HandedIn, Handing, OutputSchema};
pub(crate) use options::ParentLink;
pub use options::SubagentOptions;
pub(crate) use spawn_policy::SpawnPolicy;
