//! Jobs: what works for a session beside its run, as one list: background processes, services and subagents. Each kind is run elsewhere;
//! here they are listed ([`SessionJobs`]), recorded ([`records`]), waited for ([`WaitTool`]), read and written as `proc://` ([`JobUrls`]),
//! and their ends noticed ([`JobNews`]).

mod info;
mod news;
mod records;
mod table;
mod texts;
mod urls;
mod wait_tool;

pub(crate) use info::{of_process, of_subagent};
pub(crate) use news::JobNews;
pub(crate) use records::{RecordedJobs, job_entry, jobs_in, last_number};
pub(crate) use table::{JobMessage, SessionJobs};
pub(crate) use texts::{end_message, late_message};
pub(crate) use urls::JobUrls;
pub(crate) use wait_tool::WaitTool;
