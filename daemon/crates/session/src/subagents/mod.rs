//! Subagents: the tool `task` gives pieces of work to agents that work in sessions of their own.
//!
//! A subagent is an ordinary session of the daemon: it can be listed, followed, steered and aborted. Its options say whose it is
//! (`subagent_place`): its budget is part of its parent's, its permissions are its parent's, and its parent's user is asked where nobody
//! follows it. The session's actor knows nothing of how subagents run: the tool's calls do ([`TaskTool`], `run`), and send the actor what is to
//! be on record. A subagent hands in its result by the tool `yield`.
//!
//! A message (`write agent://<id>`, [`messages`]) reaches a subagent at work by its [`inbox`], and has one that has ended go on ([`revival`]).
//! `history://` shows what each did ([`history`]).
//!
//! A call's arguments ([`arguments`]) and the definitions of agents ([`agents`]) make a plan; each plan is run to a result ([`run`]), and the
//! results make the call's own ([`outcome`]). Entries of the session tell of its subagents (`subagent_records`): before one begins, and when it has
//! ended. One that was at work when the daemon ended is interrupted; it is not started again.
//!
//! Extensions run agents of their own, too, which are subagents of another kind: an extension opens the session ([`extension_agents`]), has its
//! own handlers and tools in it, and drives it ([`extension_agent`]).

mod agent_request;
mod agents;
mod arguments;
mod ending;
mod extension_agent;
mod extension_agents;
mod facts;
mod files;
mod history;
mod inbox;
mod isolation;
mod jtd;
mod messages;
mod names;
mod outcome;
mod plan;
mod progress_event;
mod refusal;
mod revival;
mod run;
mod table;
mod tool;
mod transcript;
mod urls;
mod yield_tool;

pub(crate) use agent_request::AgentRequest;
pub(crate) use agents::Agents;
pub(crate) use extension_agents::open_agent;
pub(crate) use facts::{Lookup, ParentFacts};
pub use files::subagent_folder;
pub(crate) use history::SubagentHistories;
pub(crate) use isolation::{CommitAuthor, IsolationPlace};
pub(crate) use plan::may_start;
pub(crate) use table::{SubagentMessage, Subagents};
pub(crate) use tool::TaskTool;
pub(crate) use urls::SubagentResults;
pub(crate) use yield_tool::YieldTool;
