//! `agentctl export`: a conversation as a file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const EXPORT_HELP: &str = "\
Examples:
  agentctl export 0198c0de                     to read it
  agentctl export 0198c0de -o talk.html        all branches, for a browser, in one file
  agentctl export 0198c0de -o talk.md
  agentctl export 0198c0de > copy.jsonl        the session file as it is
  agentctl export ./copy.jsonl --format md     of a session file

Without --format, the name of FILE decides; on a terminal it is md, else jsonl. A transcript (md) holds the branch
where the session goes on; the page (html) and the session file (jsonl) hold all of them.

Exit codes:
  0    done
  1    no session has the id or several begin so, or a file cannot be read or written
  2    FILE is there already (--force overwrites it), or its name does not say the format
  3    the page needs agentd, and it is missing
  141  stdout was closed by its reader";

/// The flags of `agentctl export`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportOptions {
    /// The id of a session or its beginning, or the path of a session file
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(complete::sessions_or_files))]
    pub(crate) session: String,

    /// Where to write it, in the place of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<ExportFormat>,

    /// Overwrite FILE
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// What an export holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The session file, byte for byte
    Jsonl,
    /// A transcript to read, in Markdown
    Md,
    /// A page to read, with all branches; needs no network
    Html,
}
