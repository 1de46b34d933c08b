//! Simple commands, as users and clients see them.

use crate::shell::{self, Assignment, SimpleCommand, Word};

/// A simple command, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCommand {
    /// Its words: quotes resolved where they are known, as written where they are only known when it runs.
    pub words: Vec<String>,
    /// Its redirections, such as `> out.txt`.
    pub redirections: Vec<String>,
}

impl ParsedCommand {
    pub(crate) fn of(command: &SimpleCommand) -> Self {
        let redirections = command.redirections.iter().map(|redirection| {
            let sign = match redirection.access {
                shell::Access::Read => "<",
                shell::Access::Write => ">",
            };
            format!("{sign} {}", redirection.target.text().unwrap_or(&redirection.target.source))
        });
        Self { redirections: redirections.collect(), ..Self::started(&command.words, &command.assignments) }
    }

    /// A command that another one starts.
    pub(crate) fn started(words: &[Word], assignments: &[Assignment]) -> Self {
        let assigned = assignments.iter().map(|assignment| format!("{}=…", assignment.name));
        let words = words.iter().map(|word| word.text().unwrap_or(&word.source).to_owned());
        Self { words: assigned.chain(words).collect(), redirections: Vec::new() }
    }
}
