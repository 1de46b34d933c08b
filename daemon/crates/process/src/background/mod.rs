//! Commands that run in the background of a session, under names: read, written to and ended while other work goes on.
//!
//! A [`BackgroundProcesses`] is the list of them, a [`BackgroundProcess`] one. Their output goes to bounded memory and to a bounded
//! file as it comes, whether anybody asks for it or not.

mod file;
mod list;
mod log;
mod process;
mod worker;

pub use list::{BackgroundError, BackgroundLimits, BackgroundProcesses};
pub use log::{LogFileFacts, OutputExcerpt};
pub use process::{BackgroundEnd, BackgroundJob, BackgroundProcess, BackgroundState, EndedBy};
