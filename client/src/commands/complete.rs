//! `agentctl completions`: the script that makes a shell complete, and the answers to the script.

mod bash;
pub(crate) mod candidates;
mod shells;
mod stored_sessions;

use clap_complete::env::{EnvCompleter, Shells};

use self::{
    bash::BashCompleter,
    shells::{FishCompleter, ZshCompleter},
};
use crate::{
    cli::{CompletionsOptions, Shell},
    exit::{Exit, Fault, conclude},
    output,
};

/// The shells that complete.
pub(crate) const SHELLS: Shells<'static> = Shells(&[&BashCompleter, &ZshCompleter, &FishCompleter]);

/// The variable by which a shell's script asks for completions.
pub(crate) const VARIABLE: &str = "AGENTCTL_COMPLETE";

/// The program's name in the script.
const PROGRAM: &str = "agentctl";

pub(crate) fn run(options: &CompletionsOptions) -> Exit {
    conclude(script(options.shell).and_then(|script| output::print(&script)))
}

fn script(shell: Shell) -> Result<String, Fault> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Bash => &BashCompleter,
        Shell::Zsh => &ZshCompleter,
        Shell::Fish => &FishCompleter,
    };
    let failed = |error: &dyn std::fmt::Display| {
        Fault::new(Exit::Failed, format!("agentctl: the script cannot be made: {error}"))
    };
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| failed(&error))?;
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
