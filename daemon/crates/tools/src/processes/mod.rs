//! The tools for what `bash` started in the background: list it, read its output, write to it, end it.

mod find;
mod input;
mod kill;
mod list;
mod output;
pub(crate) mod show;

use std::sync::Arc;

use agentd_agent::Tool;
use agentd_process::BackgroundProcesses;

/// The tools for the background processes of a session, in the order in which models see them.
#[must_use]
pub fn process_tools(list: &BackgroundProcesses) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(list::ProcessList::new(list.clone())),
        Arc::new(output::ProcessOutput::new(list.clone())),
        Arc::new(input::ProcessInput::new(list.clone())),
        Arc::new(kill::ProcessKill::new(list.clone())),
    ]
}

/// The tool that these come with.
const COMES_WITH: &str = "bash";
