//! The parts of a prompt, and their mistakes as faults of usage.

use std::path::Path;

use agentd_input::{Attachments, InputError};

use crate::exit::{Fault, tell};

/// As [`agentd_input::read_files`].
pub(crate) fn read_files(paths: &[&str], base: &Path, home: Option<&Path>) -> Result<Attachments, Fault> {
    agentd_input::read_files(paths, base, home).map_err(|error| fault(&error))
}

/// As [`agentd_input::read_stdin`].
pub(crate) fn read_stdin() -> Result<String, Fault> {
    let waiting = || {
        tell("agentctl: reading the start of the prompt from stdin; if nothing is to come, add </dev/null")
    };
    agentd_input::read_stdin(waiting).map_err(|error| fault(&error))
}

fn fault(error: &InputError) -> Fault {
    let advice = match error {
        InputError::NotFound(_) => "\nText that begins with @ goes after `--`: agentctl prompt -- \"@...\"",
        _ => "",
    };
    Fault::usage(format!("Error: {error}{advice}"))
}
