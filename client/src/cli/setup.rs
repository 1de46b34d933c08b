//! The verbs about the set-up: checks, settings, model servers, the user's shell.

use std::path::PathBuf;

use agentd_protocol::capabilities::CapabilityKind;
use clap::{Args, Subcommand, ValueEnum};

/// The flags of `agentctl doctor`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl doctor
  agentctl doctor --json

Nothing is changed, and nothing is asked of the network but a model listing of servers on this machine.

Exit codes:
  0    no problem (there can be warnings)
  1    something does not work")]
pub(crate) struct DoctorOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The verbs below `agentctl setup`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Setup {
    /// Use model servers of this machine: finds them and writes them into models.json
    Local(SetupLocalOptions),
}

const SETUP_LOCAL_HELP: &str = "\
Examples:
  agentctl setup local                                    look on the usual ports of this machine
  agentctl setup local --url http://127.0.0.1:9000/v1     this server
  agentctl setup local --dry-run                          only say what would be written

Everything else in models.json stays as it is. On a terminal you are asked before it is written. A server that another
user of this machine runs is named; where nobody can be asked it is written only with --other-user.

Exit codes:
  0    the servers are in models.json (or would be, with --dry-run)
  1    no server was found, it is another user's, or models.json cannot be used or written";

/// The flags of `agentctl setup local`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = SETUP_LOCAL_HELP)]
pub(crate) struct SetupLocalOptions {
    /// The server, instead of those on the usual ports
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The provider's id in models.json, instead of local, local-2 and so on
    #[arg(long, value_name = "ID")]
    pub(crate) provider: Option<String>,

    /// Only this model of the server
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,

    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,

    /// Also write a server of this machine that another user runs, who reads what is sent to it
    #[arg(long)]
    pub(crate) other_user: bool,

    /// Only say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the answer as JSON, without asking
    #[arg(long)]
    pub(crate) json: bool,
}

/// The verbs below `agentctl config`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Config {
    /// Show where a setting's value comes from: the file and line, and what the other layers say. Without a setting, list what files give sessions
    Explain(ExplainOptions),
    /// Show what is wrong with the files that configure sessions in this folder
    Check(CheckOptions),
}

/// The flags of `agentctl config explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  agentctl config explain defaultModel
  agentctl config explain compaction.enabled --json
  agentctl config explain                  what the files of agentd and of other tools give: rules, commands, MCP servers, ...
  agentctl config explain --kind rules     only rules

Members of objects stand after a dot. Settings and files are those of a session that would start now, in this folder.

Exit codes:
  0    the setting is explained, or the files are listed
  1    there is no such setting")]
pub(crate) struct ExplainOptions {
    /// The setting; without it, the items of files are listed
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// List only items of this kind, such as rules, skills or mcps
    #[arg(long, value_name = "KIND", conflicts_with = "key", value_parser = kind)]
    pub(crate) kind: Option<CapabilityKind>,

    /// Treat this folder as trusted
    #[arg(long, short)]
    pub(crate) approve: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A kind by its name.
fn kind(text: &str) -> Result<CapabilityKind, String> {
    let found = CapabilityKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = CapabilityKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there are {}", names.join(", "))
    })
}

/// The flags of `agentctl config check`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  agentctl config check
  agentctl config check --approve      what would be wrong if this folder were trusted
  agentctl config check --json

Looks at settings, models.json, trust, skills, prompt templates and instructions. `agentctl doctor` looks at keys, folders
and servers too.

Exit codes:
  0    nothing is wrong
  1    something is not used, or not as it stands there")]
pub(crate) struct CheckOptions {
    /// Treat this folder as trusted
    #[arg(long, short)]
    pub(crate) approve: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  source <(agentctl completions bash)                        in ~/.bashrc
  source <(agentctl completions zsh)                         in ~/.zshrc, after compinit
  agentctl completions fish | source                         in ~/.config/fish/config.fish

The script asks the agentctl on PATH what fits: verbs, flags, ids of sessions with their titles, models, providers. The
running daemon is asked, else the session files and an agentd of our own; no daemon is started.

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

/// The flags of `agentctl version`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl version
  agentctl version --json
  agentctl version --check                         whether a newer one is there
  agentctl version --check=https://host/agentd.git

Without --check nothing is asked of the network. With it git asks the repository that `cargo install --git` took the program from,
or the one that you name, for its releases (tags such as v1.2.3) and its last commit. `agentctl --version` prints the version of
agentctl alone.

Exit codes:
  0    done
  1    the repository is not known, or git cannot ask it
  3    agentd is missing, or does not say its version")]
pub(crate) struct VersionOptions {
    /// Print the versions as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the repository of the program whether it has a newer one
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(crate) check: Option<Option<String>>,
}
