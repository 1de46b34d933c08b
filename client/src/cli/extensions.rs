//! `agentctl extensions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::LogsOptions;

/// The verbs of `agentctl extensions`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Extensions {
    /// Print what extensions have written to their standard error
    Logs(ExtensionsLogsOptions),

    /// Make a new extension that works, to be changed into your own
    New(NewExtensionOptions),
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
