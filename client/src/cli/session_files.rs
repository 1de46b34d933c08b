//! The verbs about the files of sessions: exports, checks, long outputs, bug reports.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

const EXPORT_HELP: &str = "\
Examples:
  agentctl export                              the last session of this folder
  agentctl export 0198c0de                     to read it
  agentctl export 0198c0de -o talk.html        all branches, for a browser, in one file
  agentctl export 0198c0de -o talk.md
  agentctl export 0198c0de > copy.jsonl        the session file as it is
  agentctl export ./copy.jsonl --format md     of a session file

Without --format, the name of FILE decides; on a terminal it is md, else jsonl. A transcript (md) holds the branch
where the session goes on; the page (html) and the session file (jsonl) hold all of them.

Exit codes:
  0    done
  1    no session has the id or several ids begin with it, or a file cannot be read or written
  2    FILE is there already (--force overwrites it), or its name does not say the format
  3    the page needs agentd, and it is missing
  141  stdout was closed by its reader";

/// The flags of `agentctl export`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportOptions {
    /// The id of a session or its beginning, or the path of a session file; default the last session of this folder
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(candidates::sessions_or_files))]
    pub(crate) session: Option<String>,

    /// Where to write it, instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<ExportFormat>,

    /// Overwrite FILE
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// The formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The session file, byte for byte
    Jsonl,
    /// A transcript to read, in Markdown
    Md,
    /// A page to read, with all branches; needs no network
    Html,
}

const FSCK_HELP: &str = "\
Examples:
  agentctl fsck                    the last session of this folder
  agentctl fsck 0198c0de
  agentctl fsck ./copy.jsonl --repair
  agentctl fsck --all

Looks at session files, at the intent logs beside them, and with --all at what belongs to sessions that are not there any more. It
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
    /// Ids of sessions or their beginnings, or paths of session files; default the last session of this folder
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(candidates::sessions_or_files))]
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

const ARTIFACT_HELP: &str = "\
Examples:
  agentctl artifact                       which there are
  agentctl artifact 5f3a09c2 | less       all of one
  agentctl artifact 5f3a09c2 --session 0198c0de

What a command wrote is kept whole where it was too long to show, and the result names the id.

Exit codes:
  0    done
  1    no session has the id or several ids begin with it, or it keeps no such output
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
    #[arg(short, long, value_name = "SESSION", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) session: Option<String>,
}

/// The flags of `agentctl clean`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl clean                       as the settings say: storage.maxArtifactAgeDays, storage.maxArtifactBytes
  agentctl clean --dry-run             only count what would go
  agentctl clean --older-than 14
  agentctl clean --max-size 1000000000

Long outputs are the files that keep the whole of what a command wrote. Conversations are not touched: `agentctl rm`
deletes those.

Exit codes:
  0    done, also when there was nothing to remove
  1    the folder of sessions cannot be read
  3    agentd is missing or broke down")]
pub(crate) struct CleanOptions {
    /// Remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Remove those that were last changed more days ago
    #[arg(long, value_name = "DAYS")]
    pub(crate) older_than: Option<u64>,

    /// Remove the oldest until the rest takes no more
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_size: Option<u64>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const BUG_REPORT_HELP: &str = "\
Examples:
  agentctl bug-report              of the last session of this folder
  agentctl bug-report 0198c0de
  agentctl bug-report 0198c0de -o report.jsonl --recordings recorded
  agentctl bug-report 0198c0de --no-transcript         without what was said

The file is JSON Lines: versions, what doctor and config check say, settings and models.json, the session's entries, recordings of
its exchanges with providers (of --recordings, else of AGENTD_RECORD's folder), the end of the daemon's log. Keys, tokens, headers
and other known secrets are [redacted]; a secret that only you know of, such as one that a tool read, is not. `--replay FILE`
plays the recordings in it.

Exit codes:
  0    done
  1    no session has the id or several ids begin with it, no recording is of the session, or a file cannot be read or written
  2    FILE is there already; it is never overwritten
  3    agentd is missing or broke down";

/// The flags of `agentctl bug-report`.
#[derive(Debug, Clone, Args)]
#[command(after_help = BUG_REPORT_HELP)]
pub(crate) struct BugReportOptions {
    /// The id of a session or its beginning, or the path of a session file; default the last session of this folder
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(candidates::sessions_or_files))]
    pub(crate) session: Option<String>,

    /// Where to write it, instead of a file in this folder that is named after the session
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// A folder of recordings, or one of them: what is of the session goes into the report
    #[arg(long, value_name = "DIR", conflicts_with = "no_transcript")]
    pub(crate) recordings: Option<PathBuf>,

    /// Leave out what was said: the session's entries, and recordings
    #[arg(long)]
    pub(crate) no_transcript: bool,
}
