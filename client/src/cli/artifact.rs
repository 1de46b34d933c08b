//! `agentctl artifact`: long outputs of a session.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const ARTIFACT_HELP: &str = "\
Examples:
  agentctl artifact                       which there are
  agentctl artifact 5f3a09c2 | less       all of one
  agentctl artifact 5f3a09c2 --session 0198c0de

What a command wrote is kept whole where it was too long to show, and the result names the id.

Exit codes:
  0    done
  1    no session has the id or several begin so, or it keeps no such output
  3    the session is not in the daemon's memory, and agentd is missing
  141  stdout was closed by its reader";

/// The flags of `agentctl artifact`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ARTIFACT_HELP)]
pub(crate) struct ArtifactOptions {
    /// The id of an output; without it they are listed
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// The id of the session or its beginning; without it the last used one of this folder
    #[arg(short, long, value_name = "SESSION", add = ArgValueCompleter::new(complete::sessions))]
    pub(crate) session: Option<String>,
}
