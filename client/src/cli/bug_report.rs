//! `agentctl bug-report`: a fault for somebody else to look into.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const BUG_REPORT_HELP: &str = "\
Examples:
  agentctl bug-report 0198c0de
  agentctl bug-report 0198c0de -o report.jsonl --recordings traffic
  agentctl bug-report 0198c0de --no-transcript         without what was said

The file is JSON Lines: versions, what doctor and config check say, settings and models.json, the session's entries, recordings of
its traffic with providers (of --recordings, else of AGENTD_RECORD's folder), the end of the daemon's log. Keys, tokens, headers
and whatever else is known to be secret are [redacted]; what a tool read and you alone know to be secret is not. `--replay FILE`
plays the recordings in it.

Exit codes:
  0    done
  1    no session has the id or several begin so, no recording is of the session, or a file cannot be read or written
  2    FILE is there already; it is never overwritten
  3    agentd is missing or broke down";

/// The flags of `agentctl bug-report`.
#[derive(Debug, Clone, Args)]
#[command(after_help = BUG_REPORT_HELP)]
pub(crate) struct BugReportOptions {
    /// The id of a session or its beginning, or the path of a session file
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(complete::sessions_or_files))]
    pub(crate) session: String,

    /// Where to write it, in the place of a file in this folder that is named after the session
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// A folder of recordings, or one of them: what is of the session goes into the report
    #[arg(long, value_name = "DIR", conflicts_with = "no_transcript")]
    pub(crate) recordings: Option<PathBuf>,

    /// Leave out what was said: the session's entries, and recordings
    #[arg(long)]
    pub(crate) no_transcript: bool,
}
