//! `agentctl completions`: the script that makes a shell complete.

use super::{
    complete::{self, SHELLS, VARIABLE},
    one_call,
};
use crate::{
    cli::{CompletionsOptions, Shell},
    exit::{Exit, Fault},
};

/// The program as the script calls it.
const PROGRAM: &str = "agentctl";

/// Prints the script.
pub(crate) fn run(options: &CompletionsOptions) -> Exit {
    one_call::conclude(script(options.shell).and_then(|script| one_call::print(&script)))
}

fn script(shell: Shell) -> Result<String, Fault> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let failed = |error: &dyn std::fmt::Display| {
        Fault::new(Exit::Failed, format!("agentctl: the script cannot be made: {error}"))
    };
    let completer = SHELLS.completer(name).ok_or_else(|| failed(&format!("{name} is not known")))?;
    let script = complete::script(completer, VARIABLE, PROGRAM).map_err(|error| failed(&error))?;
    String::from_utf8(script).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_asks_us() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell).unwrap();
            assert!(script.contains(VARIABLE) && script.contains(PROGRAM), "{script}");
        }
    }
}
