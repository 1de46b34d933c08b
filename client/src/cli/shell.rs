//! What makes the command line easier to use: completions and manual pages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const COMPLETIONS_HELP: &str = "\
Examples:
  source <(agentctl completions bash)                        in ~/.bashrc
  source <(agentctl completions zsh)                         in ~/.zshrc, after compinit
  agentctl completions fish | source                         in ~/.config/fish/config.fish

The script asks the agentctl on PATH what fits. Ids of sessions and names of models come from the running daemon;
without one there are none.

Exit codes:
  0    done
  141  stdout was closed by its reader";

/// The flags of `agentctl completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

const MAN_HELP: &str = "\
Examples:
  agentctl man | man -l -
  agentctl man setup local | man -l -
  agentctl man --out ~/.local/share/man/man1

Exit codes:
  0    done
  1    a page cannot be written
  2    there is no such verb
  141  stdout was closed by its reader";

/// The flags of `agentctl man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManOptions {
    /// The verb whose page is printed; without one it is the page of agentctl itself
    #[arg(value_name = "VERB")]
    pub(crate) verb: Vec<String>,

    /// Write every page into this folder, as agentctl-VERB.1; it is made if need be
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub(crate) out: Option<PathBuf>,
}
