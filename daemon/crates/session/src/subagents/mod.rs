//! Subagents: the tool `task` gives pieces of work to agents that work in sessions of their own.
//!
//! A subagent is an ordinary session of the daemon: it can be listed, followed, steered and aborted. Its options say whose it is
//! (`subagent_place`): its budget is part of its parent's, its permissions are its parent's, and its parent's user is asked where nobody
//! follows it. The session's actor knows nothing of how subagents run: the tool's calls do ([`TaskTool`], `run`), and send the actor what is to
//! be on record. A subagent hands in its result by the tool `yield`.
//!
//! A call's arguments ([`arguments`]) and the definitions of agents ([`agents`]) make a plan; each plan is run to a result ([`run`]), and the
//! results make the call's own ([`outcome`]). Entries of the session tell of its subagents (`subagent_records`): before one begins, and when it has
//! ended. One that was at work when the daemon ended is interrupted; it is not started again.

mod agents;
mod arguments;
mod facts;
mod files;
mod isolation;
mod names;
mod outcome;
mod plan;
mod run;
mod table;
mod tool;
mod urls;
mod yield_tool;

pub(crate) use agents::Agents;
pub(crate) use facts::{Lookup, ParentFacts};
pub use files::subagent_folder;
pub(crate) use isolation::IsolationPlace;
pub(crate) use plan::may_start;
pub(crate) use table::{SubagentMessage, Subagents};
pub(crate) use tool::TaskTool;
pub(crate) use urls::SubagentResults;
pub(crate) use yield_tool::YieldTool;
