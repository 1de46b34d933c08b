//! `agentctl fsck`: whether session files are whole.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const FSCK_HELP: &str = "\
Examples:
  agentctl fsck 0198c0de
  agentctl fsck ./copy.jsonl --repair
  agentctl fsck --all

Looks at session files, at the ledgers beside them, and with --all at what belongs to sessions that are not there any more. It
says at which line and byte something is odd, and what. Needs no daemon, and changes nothing.

--repair writes what can be read of an odd session into NAME.repaired.jsonl beside it: a session of its own, with another id and
the original as its parent. It is read again before it gets its name, and never overwrites anything. A session that somebody has
open is looked at, but not repaired.

Exit codes:
  0    everything is as it should be
  1    something is odd or cannot be read, or no session has the id
  2    the command line cannot be used
  3    agentd is missing or broke down
  141  stdout was closed by its reader";

/// The flags of `agentctl fsck`.
#[derive(Debug, Clone, Args)]
#[command(after_help = FSCK_HELP)]
pub(crate) struct FsckOptions {
    /// Ids of sessions or their beginnings, or paths of session files
    #[arg(value_name = "ID|PATH", required_unless_present = "all", add = ArgValueCompleter::new(complete::sessions_or_files))]
    pub(crate) sessions: Vec<String>,

    /// All sessions
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,

    /// Write a repaired copy of each session that is odd
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print a line of JSON for each file
    #[arg(long)]
    pub(crate) json: bool,
}
