//! `agentctl extensions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::LogsOptions;

/// The verbs of `agentctl extensions`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Extensions {
    /// Load the extensions that a session in this folder would have, and show what they bring
    List(ExtensionsListOptions),

    /// Read the extensions of a session anew, in processes of their own
    Restart(ExtensionsRestartOptions),

    /// Print what extensions have written to their standard error
    Logs(ExtensionsLogsOptions),

    /// Make a new extension that works, to be changed into your own
    New(NewExtensionOptions),
}

const LIST_HELP: &str = "\
Examples:
  agentctl extensions list
  agentctl extensions list 1f3c              of that session, as it is now
  agentctl extensions list --json | jq '.extensions[] | select(.state != \"running\")'

Without ID it loads every extension that a session in this folder would have, and ends them again. Those of the project count only where the
project is trusted.

Exit codes:
  0    every extension is loaded
  1    one is not
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl extensions list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ExtensionsListOptions {
    /// Show those of a session: its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Print JSON: {extensions}
    #[arg(long)]
    pub(crate) json: bool,

    /// Use the extensions of the project as if it were trusted
    #[arg(long, conflicts_with = "id")]
    pub(crate) approve: bool,
}

const RESTART_HELP: &str = "\
Examples:
  agentctl extensions restart                the session that you were in last
  agentctl extensions restart 1f3c

For extensions that were changed, or that hang. The session must be in the memory of the daemon, and not at work.

Exit codes:
  0    they are loaded
  1    one cannot be loaded, or there is no such session
  2    the command line cannot be used
  3    no daemon is running, or it broke down";

/// The flags of `agentctl extensions restart`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RESTART_HELP)]
pub(crate) struct ExtensionsRestartOptions {
    /// The session: its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
}

const LOGS_HELP: &str = "\
Examples:
  agentctl extensions logs -n 20             the last 20 lines
  agentctl extensions logs --follow          and what is added

The log is extensions.log in the agent directory, for all sessions.

Exit codes:
  1    there is none";

/// The flags of `agentctl extensions logs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGS_HELP)]
pub(crate) struct ExtensionsLogsOptions {
    #[command(flatten)]
    pub(crate) log: LogsOptions,
}

const NEW_HELP: &str = "\
Examples:
  agentctl extensions new guard
  agentctl extensions new guard --lang python
  agentctl extensions new guard --lang rust --dir ~/src

Makes a folder NAME in the extensions of the agent directory, with an example that runs. docs/writing-extensions.md explains it.

Exit codes:
  0    it is there
  1    it is not: there is something of that name, or it cannot be written
  2    the command line cannot be used";

/// The flags of `agentctl extensions new`.
#[derive(Debug, Clone, Args)]
#[command(after_help = NEW_HELP)]
pub(crate) struct NewExtensionOptions {
    /// Its name: a letter, then letters, digits, - and _
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,

    /// The language
    #[arg(short, long, value_enum, default_value_t = ExtensionLanguage::Typescript)]
    pub(crate) lang: ExtensionLanguage,

    /// Make it in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// The language of a new extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtensionLanguage {
    /// For Node.js 20, and for pi
    #[value(alias = "ts")]
    Typescript,
    /// Python 3, without packages
    #[value(alias = "py")]
    Python,
    /// Built with Cargo
    #[value(alias = "rs")]
    Rust,
    /// For sh
    #[value(alias = "sh")]
    Shell,
}

/// The name of a folder and of a package.
fn name(text: &str) -> Result<String, String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if begins && text.len() <= 64 && text.chars().all(is_of_name) {
        Ok(text.to_owned())
    } else {
        Err("a name is a letter, then letters, digits, - and _, 64 in all".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_folders_and_packages() {
        for good in ["a", "guard", "my-guard_2"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        let long = "a".repeat(65);
        for bad in ["", "2a", "-a", "a/b", "..", "a b", "ä", &long] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
