//! The verbs about what the agent changed: showing it, undoing it, redoing it.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

const DIFF_HELP: &str = "\
Examples:
  agentctl diff                    what the agent changed since the last prompt, in the last session of this folder
  agentctl diff 0198c0de --stat
  agentctl diff --session-start -- src/ | less
  agentctl diff --checkpoint c4

Only changes of sessions with undo on (--undo on, or the setting) are known, and only the agent's own (docs/undo.md).

Exit codes:
  0    it was shown, also when nothing changed
  1    no session fits, or undo was never on";

/// The flags of `agentctl diff`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct DiffOptions {
    /// The id of a session, or its beginning; default the last one of this folder
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) session: Option<String>,

    /// Everything since the session's start, not since the last prompt
    #[arg(long, conflicts_with = "checkpoint")]
    pub(crate) session_start: bool,

    /// Only the changes of this checkpoint
    #[arg(long, value_name = "ID")]
    pub(crate) checkpoint: Option<String>,

    /// A line for each file instead of its changed lines
    #[arg(long)]
    pub(crate) stat: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Only these files, or what is below them
    #[arg(last = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
}

const UNDO_HELP: &str = "\
Examples:
  agentctl undo                    the changes of the last prompt, in the last session of this folder
  agentctl undo                    once more: those of the prompt before
  agentctl undo --preview
  agentctl undo 0198c0de -- src/main.rs
  agentctl undo --checkpoint c4    back to before this checkpoint

Only the agent's own changes are undone. A file that somebody changed since is left as it is, and named.

Exit codes:
  0    everything was restored
  1    a file was left as it is or is not kept, there is nothing to undo, no session fits, or the session is at work";

/// The flags of `agentctl undo`.
#[derive(Debug, Clone, Args)]
#[command(after_help = UNDO_HELP)]
pub(crate) struct UndoOptions {
    /// The id of a session, or its beginning; default the last one of this folder
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) session: Option<String>,

    /// Go back to before this checkpoint, instead of one prompt
    #[arg(long, value_name = "ID")]
    pub(crate) checkpoint: Option<String>,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) preview: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Only these files, or what is below them
    #[arg(last = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
}

const REDO_HELP: &str = "\
Examples:
  agentctl redo                    undoes the last agentctl undo, in the last session of this folder
  agentctl redo --preview

It works until the agent changes files again.

Exit codes:
  0    everything was restored
  1    a file was left as it is, there is nothing to redo, no session fits, or the session is at work";

/// The flags of `agentctl redo`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REDO_HELP)]
pub(crate) struct RedoOptions {
    /// The id of a session, or its beginning; default the last one of this folder
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) session: Option<String>,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) preview: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
