//! Jobs: what works for a session beside its run, as one list: background processes and subagents. Each kind is run elsewhere; here they are
//! listed ([`list`]), waited for ([`WaitTool`]), and their ends noticed ([`JobNews`]).

mod list;
mod news;
mod wait_tool;

pub(crate) use list::jobs;
pub(crate) use news::JobNews;
pub(crate) use wait_tool::WaitTool;
