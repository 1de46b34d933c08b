//! Finds the process that a call names.

use std::sync::Arc;

use agentd_agent::ToolError;
use agentd_process::{BackgroundProcess, BackgroundProcesses};

use super::show::status;

/// The process of that name.
///
/// # Errors
/// Lists the existing processes.
pub(super) fn process(list: &BackgroundProcesses, id: &str) -> Result<Arc<BackgroundProcess>, ToolError> {
    if let Some(process) = list.get(id.trim()) {
        return Ok(process);
    }
    let known: Vec<String> = list.list().iter().map(|it| format!("{} ({})", it.id(), status(it))).collect();
    let rest = if known.is_empty() {
        "None was started since this session was opened: background processes end with their session, and with the \
         daemon."
            .to_owned()
    } else {
        format!("There are: {}.", known.join(", "))
    };
    Err(ToolError(format!("There is no background process {id:?}. {rest}")))
}

/// The process of that name, if it still runs.
///
/// # Errors
/// As [`process`]; for an ended process, how it ended.
pub(super) fn running(list: &BackgroundProcesses, id: &str) -> Result<Arc<BackgroundProcess>, ToolError> {
    let process = process(list, id)?;
    match process.end() {
        None => Ok(process),
        Some(_) => Err(ToolError(format!("{} has ended already: it {}.", process.id(), status(&process)))),
    }
}
