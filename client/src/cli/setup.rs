//! `agentctl doctor` and `agentctl setup`: what agentd needs of this machine.

use clap::{Args, Subcommand};

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

/// What can be set up.
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
    /// The server, in the place of those on the usual ports
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The provider's id in models.json, in the place of local, local-2 and so on
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
