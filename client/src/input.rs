//! The parts of a prompt, and their mistakes as faults of usage.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use agentd_input::{Attachments, InputError, Typing};

use crate::exit::{Fault, tell};

/// As [`agentd_input::read_files`].
pub(crate) fn read_files(paths: &[&str], base: &Path, home: Option<&Path>) -> Result<Attachments, Fault> {
    agentd_input::read_files(paths, base, home).map_err(|error| fault(&error))
}

/// As [`agentd_input::read_piped`]; with `named`, the user asked for stdin, and may type there.
pub(crate) fn read_piped(named: bool) -> Result<String, Fault> {
    let typing = if named { Typing::Read } else { Typing::Ignored };
    let waiting = || {
        tell(if named && io::stdin().is_terminal() {
            "agentctl: reading from the terminal; Ctrl-D at the beginning of a line ends the text"
        } else if named {
            "agentctl: reading stdin to its end"
        } else {
            "agentctl: reading the start of the prompt from stdin; if nothing is to come, add </dev/null"
        });
    };
    agentd_input::read_piped(typing, waiting).map_err(|error| fault(&error))
}

/// A mistake in the parts of a prompt.
pub(crate) fn fault(error: &InputError) -> Fault {
    let advice = match error {
        InputError::NotFound(_) => "\nText that begins with @ goes after `--`: agentctl prompt -- \"@...\"",
        InputError::StdinTwice => "\nA dash that is part of the text goes after `--`.",
        _ => "",
    };
    Fault::usage(format!("Error: {error}{advice}"))
}
