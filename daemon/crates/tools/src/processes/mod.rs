//! The tools for background processes that `bash` started: list them, read their output, write to them, end them.

mod find;
mod input;
pub(crate) mod job;
mod kill;
mod list;
mod output;
pub(crate) mod show;

use std::sync::Arc;

use agentd_agent::Tool;
use agentd_process::BackgroundProcesses;

pub use input::write_input;
pub use job::{job_end_text, job_line, job_state_text};
pub use kill::kill_process;

/// The tools for a session's background processes, in the order in which models see them.
#[must_use]
pub fn process_tools(list: &BackgroundProcesses) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(list::ProcessList::new(list.clone())),
        Arc::new(output::ProcessOutput::new(list.clone())),
        Arc::new(input::ProcessInput::new(list.clone())),
        Arc::new(kill::ProcessKill::new(list.clone())),
    ]
}
